-- Purpose: forget why batches stood where they stood: they have ended.
-- Arguments: $1 batch_ids.
-- Result: none.
DELETE FROM batch_breakdown WHERE batch_id = ANY($1::bigint[]);
