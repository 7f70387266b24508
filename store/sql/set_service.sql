-- Purpose: change the service level and the queue of an active batch; null leaves one as it is.
-- Arguments: $1 batch_id, $2 level, $3 queue.
-- Result: batch_id; no row when there is no such active batch.
UPDATE batch SET level = coalesce($2, level), queue = coalesce($3, queue) WHERE batch_id = $1 AND ended_at IS NULL
RETURNING batch_id;
