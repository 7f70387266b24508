-- Purpose: what stands before a batch in the order.
-- Arguments: $1 batch_id.
-- Result: one row: active batches with unsent instances before it that no limit holds, and how many instances those are.
SELECT count(*) AS batches, coalesce(sum(ahead.unsent), 0)::bigint AS unsent
FROM batch AS this
CROSS JOIN LATERAL (
    SELECT (
        SELECT coalesce(sum(batch_count.unsent), 0) FROM batch_count WHERE batch_count.batch_id = batch.batch_id
    ) AS unsent
    FROM batch
    WHERE batch.state = 'active'
        AND batch.waiting
        AND batch.hold IS NULL
        AND (batch.order_tier, batch.order_key, batch.batch_id) < (this.order_tier, this.order_key, this.batch_id)
) AS ahead
WHERE this.batch_id = $1 AND ahead.unsent > 0;
