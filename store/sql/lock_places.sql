-- Purpose: lock batches to move them in the order; one that ended or that somebody else is changing is left out.
-- Arguments: $1 batch_ids.
-- Result: batch_id, ascending.
SELECT batch_id
FROM batch
WHERE batch_id = ANY($1::bigint[]) AND ended_at IS NULL
ORDER BY batch_id
FOR NO KEY UPDATE SKIP LOCKED;
