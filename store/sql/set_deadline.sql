-- Purpose: change the deadline of an active batch that has one.
-- Arguments: $1 batch_id, $2 deadline_at.
-- Result: batch_id; no row when there is no such batch.
UPDATE batch SET deadline_at = $2
WHERE batch_id = $1 AND ended_at IS NULL AND deadline_at IS NOT NULL
RETURNING batch_id;
