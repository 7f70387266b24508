-- Purpose: batches with their totals.
-- Arguments: $1 limit, $2 batch_id before which to go on, or null.
-- Result: rows of batch_with_counts, newest first.
SELECT *
FROM batch_with_counts
WHERE batch_id < coalesce($2::bigint, 9223372036854775807)
ORDER BY batch_id DESC
LIMIT $1;
