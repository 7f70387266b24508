-- Purpose: lock batches that seem to have nothing unsent against whoever adds something; those that are locked are left out.
-- Arguments: $1 batch_ids.
-- Result: batch_id, ascending.
SELECT batch_id FROM batch WHERE batch_id = ANY($1::bigint[]) ORDER BY batch_id FOR UPDATE SKIP LOCKED;
