-- Purpose: publish when a batch should be complete.
-- Arguments: $1 batch_id, $2 completion_at, $3 completion_q50_at, $4 completion_q90_at (null: people are told none).
-- Result: batch_id; no row unless the batch is active.
UPDATE batch SET completion_at = $2, completion_q50_at = $3, completion_q90_at = $4
WHERE batch_id = $1 AND ended_at IS NULL  -- which an active batch's is: found by its id alone
RETURNING batch_id;
