-- Purpose: some batches with their totals.
-- Arguments: $1 batch_ids.
-- Result: rows of batch_with_counts by id.
SELECT * FROM batch_with_counts WHERE batch_id = ANY($1::bigint[]) ORDER BY batch_id;
