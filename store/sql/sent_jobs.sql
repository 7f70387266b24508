-- Purpose: what a reply needs to send instances once more.
-- Arguments: $1 instance_ids.
-- Result: instance_id, command_line, inputs (JSON or null), by id.
SELECT
    instance.instance_id,
    coalesce(replace(template.command_line, '{i}', job.number::text), job.command_line) AS command_line,
    coalesce(template.inputs, job.inputs) AS inputs
FROM instance
JOIN job ON job.job_id = instance.job_id
LEFT JOIN job_template AS template ON template.template_id = job.template_id
WHERE instance.instance_id = ANY($1::bigint[])
ORDER BY instance.instance_id;
