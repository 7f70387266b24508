-- Purpose: one job of the history.
-- Arguments: $1 job_id.
-- Result: the job; no row when there is none.
SELECT
    finished_job.job_id, finished_job.batch_id, finished_job.job_class_id, finished_job.state, finished_job.failure,
    finished_job.canonical_instance_id,
    coalesce(replace(template.command_line, '{i}', finished_job.number::text), finished_job.command_line) AS command_line
FROM finished_job
LEFT JOIN job_template AS template ON template.template_id = finished_job.template_id
WHERE finished_job.job_id = $1;
