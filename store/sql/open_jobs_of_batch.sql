-- Purpose: the open jobs of a batch.
-- Arguments: $1 batch_id, $2 the job_id after which to begin, $3 limit.
-- Result: job_id, job_class_id, copies, tail_copies, and the median turnaround of the batch's results, or of the app's by
--   size, by id.
SELECT
    job.job_id, job.job_class_id, job.copies, job.tail_copies,
    coalesce(batch.median_turnaround_s, app.turnaround_s_per_flop * job_class.fpops_est_flop) AS median_turnaround_s
FROM job
JOIN job_class ON job_class.job_class_id = job.job_class_id
JOIN batch ON batch.batch_id = job.batch_id
JOIN app ON app.app_id = batch.app_id
WHERE job.batch_id = $1 AND job.job_id > $2 AND job.state = 'open'
ORDER BY job.job_id
LIMIT $3;
