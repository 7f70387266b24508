-- Purpose: batches that ended since they were forecast last.
-- Arguments: $1 limit.
-- Result: rows of batch_with_counts by batch_id, with delay_bound_s.
SELECT batch_with_counts.*, class.delay_bound_s
FROM (
    SELECT batch_forecast.batch_id
    FROM batch_forecast
    JOIN batch ON batch.batch_id = batch_forecast.batch_id
    WHERE batch.ended_at IS NOT NULL
    ORDER BY batch_forecast.batch_id
    LIMIT $1
) AS ended
JOIN batch_with_counts ON batch_with_counts.batch_id = ended.batch_id
CROSS JOIN LATERAL (
    SELECT max(job_class.delay_bound_s) AS delay_bound_s
    FROM job_class
    WHERE job_class.batch_id = ended.batch_id
) AS class
ORDER BY batch_with_counts.batch_id;
