-- Purpose: one batch with its totals.
-- Arguments: $1 batch_id.
-- Result: the row of batch_with_counts; none when there is no such batch.
SELECT * FROM batch_with_counts WHERE batch_id = $1;
