-- Purpose: cancel what waits of the first active batches.
-- Arguments: $1 how many batches.
-- Result: none.
WITH first AS (
    SELECT batch_id
    FROM batch
    WHERE state = 'active'
        AND (SELECT sum(batch_count.unsent) FROM batch_count WHERE batch_count.batch_id = batch.batch_id) > 0
    ORDER BY order_tier, order_key, batch_id
    LIMIT $1
),
cancelled AS (
    UPDATE instance SET state = 'cancelled'
    FROM first
    WHERE instance.batch_id = first.batch_id AND instance.state = 'unsent'
    RETURNING instance.batch_id
)
UPDATE batch_count SET unsent = batch_count.unsent - 1
FROM cancelled
WHERE batch_count.batch_id = cancelled.batch_id AND batch_count.stripe = 3;
