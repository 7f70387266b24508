-- Purpose: what some batches are called.
-- Arguments: $1 batch_ids (array).
-- Result: batch_id and name, by id.
SELECT batch_id, name FROM batch WHERE batch_id = ANY($1::bigint[]) ORDER BY batch_id;
