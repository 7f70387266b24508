-- Purpose: an active batch as a forecast of it begins.
-- Arguments: $1 batch_id.
-- Result: the row of batch_with_counts with made_at and jobs_over_then of its last forecast (nulls when there is none),
--   delay_bound_s, least_spare_instances and spread (null while its app has none). No row unless such a batch is active.
SELECT
    batch_with_counts.*, last.made_at, last.jobs_over AS jobs_over_then, class.delay_bound_s, class.least_spare_instances,
    app_forecast.spread
FROM batch_with_counts
LEFT JOIN batch_forecast AS last ON last.batch_id = batch_with_counts.batch_id
LEFT JOIN app_forecast ON app_forecast.app_id = batch_with_counts.app_id
CROSS JOIN LATERAL (
    SELECT max(job_class.delay_bound_s) AS delay_bound_s, min(job_class.max_instances - job_class.quorum) AS least_spare_instances
    FROM job_class
    WHERE job_class.batch_id = batch_with_counts.batch_id
) AS class
WHERE batch_with_counts.batch_id = $1 AND batch_with_counts.ended_at IS NULL;
