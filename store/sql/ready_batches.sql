-- Purpose: the first active batches that may have unsent instances and that no limit holds.
-- Arguments: $1 limit.
-- Result: rows of batch_with_counts by (order_tier, order_key, batch_id); some may have nothing unsent any more.
-- As many batches are looked at as are asked for, however many are active.
SELECT batch_with_counts.*
FROM (
    SELECT batch_id
    FROM batch
    WHERE state = 'active' AND waiting AND hold IS NULL
    ORDER BY order_tier, order_key, batch_id
    LIMIT $1
) AS first
JOIN batch_with_counts ON batch_with_counts.batch_id = first.batch_id
ORDER BY batch_with_counts.order_tier, batch_with_counts.order_key, batch_with_counts.batch_id;
