-- Purpose: mark the active batches that wait without a mark; locked in key order, as by whoever adds to them.
-- Arguments: none.
-- Result: batch_id, in no order.
WITH lost AS MATERIALIZED (
    SELECT batch_id
    FROM batch
    WHERE state = 'active'
        AND NOT waiting
        AND (SELECT sum(batch_count.unsent) FROM batch_count WHERE batch_count.batch_id = batch.batch_id) > 0
    ORDER BY batch_id
    FOR NO KEY UPDATE
)
UPDATE batch SET waiting = true
FROM lost
WHERE batch.batch_id = lost.batch_id
RETURNING batch.batch_id;
