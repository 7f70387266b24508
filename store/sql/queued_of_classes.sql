-- Purpose: the unsent work of some batches that is committed to a class of hosts.
-- Arguments: $1 batch_ids.
-- Result: rows (app_id, hr_type, hr_class, flop).
SELECT batch.app_id, job_class.hr_type, job.hr_class, sum(job_class.fpops_est_flop) AS flop
FROM unnest($1::bigint[]) AS wanted (batch_id)
JOIN batch ON batch.batch_id = wanted.batch_id
CROSS JOIN LATERAL (  -- through the two indexes that the feeder reads by
    SELECT job_id, job_class_id FROM instance
    WHERE instance.batch_id = wanted.batch_id AND instance.state = 'unsent' AND NOT instance.urgent
    UNION ALL
    SELECT job_id, job_class_id FROM instance
    WHERE instance.batch_id = wanted.batch_id AND instance.state = 'unsent' AND instance.urgent
) AS waiting
JOIN job ON job.job_id = waiting.job_id AND job.hr_class <> 0
JOIN job_class ON job_class.job_class_id = waiting.job_class_id
GROUP BY batch.app_id, job_class.hr_type, job.hr_class
ORDER BY batch.app_id, job_class.hr_type, job.hr_class;
