-- Purpose: lock batches until the transaction ends.
-- Arguments: $1 batch_ids.
-- Result: batch_id, ascending.
SELECT batch_id FROM batch WHERE batch_id = ANY($1::bigint[]) ORDER BY batch_id FOR NO KEY UPDATE;
