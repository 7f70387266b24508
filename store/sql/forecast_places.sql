-- Purpose: what active batches wait for, in the order in which they are sent.
-- Arguments: none.
-- Result: batch_id, app_id, qos, deadline_at, unpaid, unsent (0 while a limit holds the batch), in the order of the queue.
SELECT
    batch.batch_id, batch.app_id, batch.qos, batch.deadline_at, batch.unpaid,
    CASE
        WHEN batch.hold IS NULL THEN (
            SELECT coalesce(sum(batch_count.unsent), 0) FROM batch_count WHERE batch_count.batch_id = batch.batch_id
        )
        ELSE 0
    END::bigint AS unsent
FROM batch
WHERE batch.state = 'active' AND batch.waiting
ORDER BY batch.order_tier, batch.order_key, batch.batch_id;
