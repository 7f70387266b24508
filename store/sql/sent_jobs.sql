-- Purpose: what a reply needs to send instances once more.
-- Arguments: $1 instance_ids.
-- Result: instance_id, command_line, inputs (JSON or null), by id.
SELECT instance.instance_id, job.command_line, job.inputs
FROM instance
JOIN job ON job.job_id = instance.job_id
WHERE instance.instance_id = ANY($1::bigint[])
ORDER BY instance.instance_id;
