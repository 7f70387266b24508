-- Purpose: jobs of a batch that are in the history.
-- Arguments: $1 batch_id, $2 limit, $3 job_id after which to go on, 0 for the start.
-- Result: jobs by id.
SELECT job_id, batch_id, job_class_id, state, command_line, failure, canonical_instance_id
FROM finished_job
WHERE batch_ended_at = (SELECT ended_at FROM batch WHERE batch.batch_id = $1) AND batch_id = $1 AND job_id > $3
ORDER BY job_id
LIMIT $2;
