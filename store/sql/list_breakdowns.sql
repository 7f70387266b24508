-- Purpose: why batches stand where they stand.
-- Arguments: $1 batch_ids.
-- Result: batch_id, record, by batch_id.
SELECT batch_id, record FROM batch_breakdown WHERE batch_id = ANY($1::bigint[]) ORDER BY batch_id;
