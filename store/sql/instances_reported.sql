-- Purpose: instances that hosts report about, with their uploads (JSON) and their computers.
-- Arguments: $1 instance_ids.
-- Result: sent instances by id.
SELECT
    instance.instance_id, instance.job_id, instance.batch_id, instance.job_class_id, instance.app_version_id,
    instance.host_id, instance.volunteer_id, instance.sent_at, instance.due_at, instance.est_runtime_s, instance.tight,
    instance.gated,
    app.name AS app_name, job.state <> 'open' AS no_longer_needed,
    coalesce(batch.median_turnaround_s, app.turnaround_s_per_flop * job_class.fpops_est_flop) AS median_turnaround_s,
    instance.state, instance.turnaround_sample, instance.timeout_at, instance.reported_at, job_class.fpops_est_flop, job_class.outputs,
    (
        SELECT jsonb_agg(jsonb_build_object('name', name, 'nbytes', nbytes, 'md5', md5) ORDER BY name)
        FROM upload
        WHERE upload.instance_id = instance.instance_id
    ) AS uploads,
    host.host_cpid, host.domain_name
FROM instance
JOIN host ON host.host_id = instance.host_id
JOIN job ON job.job_id = instance.job_id
JOIN job_class ON job_class.job_class_id = instance.job_class_id
JOIN batch ON batch.batch_id = instance.batch_id
JOIN app ON app.app_id = batch.app_id
WHERE instance.instance_id = ANY($1::bigint[]) AND instance.host_id IS NOT NULL
ORDER BY instance.instance_id;
