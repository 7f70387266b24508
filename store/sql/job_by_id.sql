-- Purpose: one job.
-- Arguments: $1 job_id.
-- Result: the job; no row when there is none.
SELECT
    job.job_id, job.batch_id, job.job_class_id, job.state, job.failure, job.canonical_instance_id,
    coalesce(replace(template.command_line, '{i}', job.number::text), job.command_line) AS command_line
FROM job
LEFT JOIN job_template AS template ON template.template_id = job.template_id
WHERE job.job_id = $1;
