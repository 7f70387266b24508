-- Purpose: the instances of jobs as the validator looks at them, with their uploads (JSON).
-- Arguments: $1 job_ids.
-- Result: instances by job and id.
SELECT
    instance.instance_id, instance.job_id, instance.batch_id, instance.state, instance.host_id, instance.app_version_id,
    instance.sent_at, instance.due_at, instance.reported_at, instance.est_runtime_s, instance.elapsed_s, instance.tight,
    instance.turnaround_sample, instance.timeout_at,
    coalesce(batch.median_turnaround_s, app.turnaround_s_per_flop * job_class.fpops_est_flop) AS median_turnaround_s,
    (
        SELECT jsonb_agg(jsonb_build_object('name', name, 'nbytes', nbytes, 'md5', md5) ORDER BY name)
        FROM upload
        WHERE upload.instance_id = instance.instance_id
    ) AS uploads
FROM instance
JOIN job_class ON job_class.job_class_id = instance.job_class_id
JOIN batch ON batch.batch_id = instance.batch_id
JOIN app ON app.app_id = batch.app_id
WHERE instance.job_id = ANY($1::bigint[])
ORDER BY instance.job_id, instance.instance_id;
