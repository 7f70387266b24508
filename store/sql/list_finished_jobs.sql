-- Purpose: jobs of a batch that are in the history.
-- Arguments: $1 batch_id, $2 limit, $3 job_id after which to go on, 0 for the start.
-- Result: jobs by id.
SELECT
    finished_job.job_id, finished_job.batch_id, finished_job.job_class_id, finished_job.state, finished_job.failure,
    finished_job.canonical_instance_id,
    coalesce(replace(template.command_line, '{i}', finished_job.number::text), finished_job.command_line) AS command_line
FROM finished_job
LEFT JOIN job_template AS template ON template.template_id = finished_job.template_id
WHERE
    finished_job.batch_ended_at = (SELECT ended_at FROM batch WHERE batch.batch_id = $1)
    AND finished_job.batch_id = $1 AND finished_job.job_id > $3
ORDER BY finished_job.job_id
LIMIT $2;
