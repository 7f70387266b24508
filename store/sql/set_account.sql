-- Purpose: let another account be charged for an active batch; what was sent is charged to the account it was sent for.
-- Arguments: $1 batch_id, $2 account_id.
-- Result: batch_id; no row when there is no such batch, or something of it was sent.
UPDATE batch SET account_id = $2
WHERE batch_id = $1 AND ended_at IS NULL
    AND NOT EXISTS (SELECT FROM batch_count WHERE batch_count.batch_id = $1 AND sent <> 0)
RETURNING batch_id;
