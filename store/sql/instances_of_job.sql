-- Purpose: the instances of a job as people look at them.
-- Arguments: $1 job_id.
-- Result: instances by id, with their standard error and uploads (JSON).
SELECT
    instance.instance_id, instance.job_id, instance.state, instance.retries, instance.tight, instance.host_id,
    instance.app_version_id, instance.sent_at, instance.due_at, instance.reported_at, instance.est_runtime_s,
    instance.elapsed_s, instance.exit_status, instance.reason, instance.because, instance_stderr.stderr,
    (
        SELECT jsonb_agg(jsonb_build_object('name', name, 'nbytes', nbytes, 'md5', md5) ORDER BY name)
        FROM upload
        WHERE upload.instance_id = instance.instance_id
    ) AS uploads
FROM instance
LEFT JOIN instance_stderr USING (instance_id)
WHERE instance.job_id = $1
ORDER BY instance.instance_id;
