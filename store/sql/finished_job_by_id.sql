-- Purpose: one job of the history.
-- Arguments: $1 job_id.
-- Result: the job; no row when there is none.
SELECT job_id, batch_id, job_class_id, state, command_line, failure, canonical_instance_id
FROM finished_job
WHERE job_id = $1;
