-- Purpose: the first active batches that no limit holds and that have unsent instances, with how many of those are retries.
-- Arguments: $1 limit.
-- Result: rows of batch_with_counts by (order_tier, order_key, batch_id), with retries_unsent, the least delay_bound_s, most_quorum and most_retries of its jobs.
SELECT
    batch_with_counts.*, retry.retries_unsent, class.delay_bound_s, class.most_quorum, retry.most_retries
FROM (
    SELECT batch_id
    FROM batch
    WHERE state = 'active'
        AND waiting
        AND hold IS NULL
        AND (SELECT sum(batch_count.unsent) FROM batch_count WHERE batch_count.batch_id = batch.batch_id) > 0
    ORDER BY order_tier, order_key, batch_id
    LIMIT $1
) AS first
JOIN batch_with_counts ON batch_with_counts.batch_id = first.batch_id
CROSS JOIN LATERAL (
    SELECT count(*) AS retries_unsent, coalesce(max(instance.retries), 0) AS most_retries
    FROM instance
    WHERE instance.batch_id = first.batch_id AND instance.state = 'unsent' AND instance.urgent AND instance.retries > 0
) AS retry
CROSS JOIN LATERAL (
    SELECT min(job_class.delay_bound_s) AS delay_bound_s, max(job_class.quorum) AS most_quorum
    FROM job_class
    WHERE job_class.batch_id = first.batch_id
) AS class
ORDER BY batch_with_counts.order_tier, batch_with_counts.order_key, batch_with_counts.batch_id;
