-- Purpose: the jobs of a batch that were not cancelled, for the completion estimator.
-- Arguments: $1 batch_id.
-- Result: the fields of domain/forecasting.py JOB_FIELDS, none of them null.
SELECT
    job.job_id, job_class.fpops_est_flop, job.state = 'open' AS is_open,
    least(job_class.max_instances, greatest(job_class.quorum, job.copies)) AS needed
FROM job
JOIN job_class ON job_class.job_class_id = job.job_class_id
WHERE job.batch_id = $1::bigint AND job.state <> 'cancelled'
