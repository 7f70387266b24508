-- Purpose: forget batches that have ended and of which nothing is under way any more.
-- Arguments: $1 batch_ids.
-- Result: none.
DELETE FROM batch_order WHERE batch_id = ANY($1::bigint[]);
