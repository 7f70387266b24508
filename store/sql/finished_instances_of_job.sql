-- Purpose: the instances of a job of the history as people look at them.
-- Arguments: $1 job_id, $2 batch_id.
-- Result: instances by id, with their standard error and uploads (JSON).
SELECT
    instance_id, job_id, state, retries, tight, host_id, app_version_id, sent_at, due_at, reported_at, est_runtime_s,
    elapsed_s, exit_status, reason, because, stderr, uploads
FROM finished_instance
WHERE batch_ended_at = (SELECT ended_at FROM batch WHERE batch_id = $2) AND job_id = $1
ORDER BY instance_id;
