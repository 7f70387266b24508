-- Purpose: change the user priority of an active batch.
-- Arguments: $1 batch_id, $2 user_priority.
-- Result: batch_id; no row when there is no such active batch.
UPDATE batch SET user_priority = $2 WHERE batch_id = $1 AND ended_at IS NULL
RETURNING batch_id;
