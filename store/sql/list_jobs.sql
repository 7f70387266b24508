-- Purpose: jobs of a batch.
-- Arguments: $1 batch_id, $2 limit, $3 job_id after which to go on, 0 for the start.
-- Result: jobs by id.
SELECT
    job.job_id, job.batch_id, job.job_class_id, job.state, job.failure, job.canonical_instance_id,
    coalesce(replace(template.command_line, '{i}', job.number::text), job.command_line) AS command_line
FROM job
LEFT JOIN job_template AS template ON template.template_id = job.template_id
WHERE job.batch_id = $1 AND job.job_id > $3
ORDER BY job.job_id
LIMIT $2;
