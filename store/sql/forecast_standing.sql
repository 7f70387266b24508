-- Purpose: an active batch as a forecast of it begins.
-- Arguments: $1 batch_id.
-- Result: the row of batch_with_counts with made_at and jobs_over_then of its last forecast (nulls when there is none),
--   delay_bound_s, least_spare_instances, spread (null while its app has none) and
--   checkpoint_fraction (the last one of a forecast that is scored, null when there is none). No row unless such a batch is active.
SELECT
    batch_with_counts.*, last.made_at, last.jobs_over AS jobs_over_then, class.delay_bound_s, class.least_spare_instances,
    app_forecast.spread, checkpoint.checkpoint_fraction
FROM batch_with_counts
LEFT JOIN batch_forecast AS last ON last.batch_id = batch_with_counts.batch_id
LEFT JOIN app_forecast ON app_forecast.app_id = batch_with_counts.app_id
CROSS JOIN LATERAL (
    SELECT max(job_class.delay_bound_s) AS delay_bound_s, min(job_class.max_instances - job_class.quorum) AS least_spare_instances
    FROM job_class
    WHERE job_class.batch_id = batch_with_counts.batch_id
) AS class
CROSS JOIN LATERAL (
    SELECT max(forecast.checkpoint_fraction) AS checkpoint_fraction
    FROM forecast
    WHERE forecast.batch_id = batch_with_counts.batch_id AND forecast.method NOT IN ('complete', 'fallback')
) AS checkpoint
WHERE batch_with_counts.batch_id = $1 AND batch_with_counts.ended_at IS NULL;
