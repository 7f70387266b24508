-- Purpose: the first active batches that have unsent instances.
-- Arguments: $1 limit.
-- Result: rows of batch_with_counts by (order_tier, order_key, batch_id).
SELECT *
FROM batch_with_counts
WHERE state = 'active' AND unsent > 0
ORDER BY order_tier, order_key, batch_id
LIMIT $1;
