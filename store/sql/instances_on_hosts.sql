-- Purpose: what hosts have in progress, with what it takes to judge a report about it, uploads included (JSON).
-- Arguments: $1 host_ids.
-- Result: instances by host and id.
SELECT
    instance.instance_id, instance.job_id, instance.batch_id, instance.job_class_id, instance.app_version_id,
    instance.host_id, instance.volunteer_id, instance.sent_at, instance.due_at, instance.est_runtime_s, instance.tight,
    instance.gated,
    app.name AS app_name, job.state <> 'open' AS no_longer_needed,
    coalesce(batch.median_turnaround_s, app.turnaround_s_per_flop * job_class.fpops_est_flop) AS median_turnaround_s,
    instance.state, instance.turnaround_sample, instance.timeout_at, instance.reported_at, job_class.fpops_est_flop,
    job_class.outputs,
    (
        SELECT jsonb_agg(jsonb_build_object('name', name, 'nbytes', nbytes, 'md5', md5) ORDER BY name)
        FROM upload
        WHERE upload.instance_id = instance.instance_id
    ) AS uploads
FROM instance
JOIN job ON job.job_id = instance.job_id
JOIN job_class ON job_class.job_class_id = instance.job_class_id
JOIN batch ON batch.batch_id = instance.batch_id
JOIN app ON app.app_id = batch.app_id
WHERE instance.host_id = ANY($1::int[]) AND instance.state = 'in_progress'
ORDER BY instance.host_id, instance.instance_id;
