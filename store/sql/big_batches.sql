-- Purpose: the first waiting batches that no limit holds and whose jobs may be big.
-- Arguments: $1 least cores, $2 least memory_bytes, $3 least disk_bytes of one job, $4 app_ids whose jobs always are,
--   $5 limit.
-- Result: rows in the batches' order: batch_id, app_id, instances sent, and the most that one of its jobs asks for.
SELECT first.batch_id, first.app_id, counts.sent, first.cores, first.memory_bytes, first.disk_bytes
FROM (
    SELECT batch.batch_id, batch.app_id, batch.order_tier, batch.order_key, class.*
    FROM batch
    CROSS JOIN LATERAL (  -- by its index, one batch after the other
        SELECT max(ncpus) AS cores, max(memory_bytes) AS memory_bytes, max(disk_bytes) AS disk_bytes
        FROM job_class
        WHERE job_class.batch_id = batch.batch_id
    ) AS class
    WHERE batch.state = 'active' AND batch.waiting AND batch.hold IS NULL
        AND (
            batch.app_id = ANY ($4::int[])
            OR class.cores >= $1 OR class.memory_bytes >= $2 OR class.disk_bytes >= $3
        )
    ORDER BY batch.order_tier, batch.order_key, batch.batch_id
    LIMIT $5
) AS first
CROSS JOIN LATERAL (
    SELECT coalesce(sum(sent), 0)::bigint AS sent, coalesce(sum(unsent), 0)::bigint AS unsent
    FROM batch_count
    WHERE batch_count.batch_id = first.batch_id
) AS counts
WHERE counts.unsent > 0
ORDER BY first.order_tier, first.order_key, first.batch_id;
