-- Purpose: the first active batches that have unsent instances.
-- Arguments: $1 limit.
-- Result: rows of batch_with_counts by (order_tier, order_key, batch_id).
-- Ids are chosen before everything is summed: a batch that is passed costs a look at its few counter rows.
SELECT batch_with_counts.*
FROM (
    SELECT batch_id
    FROM batch
    WHERE state = 'active'
        AND (SELECT sum(batch_count.unsent) FROM batch_count WHERE batch_count.batch_id = batch.batch_id) > 0
    ORDER BY order_tier, order_key, batch_id
    LIMIT $1
) AS first
JOIN batch_with_counts ON batch_with_counts.batch_id = first.batch_id
ORDER BY batch_with_counts.order_tier, batch_with_counts.order_key, batch_with_counts.batch_id;
