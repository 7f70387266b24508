-- Purpose: instances whose due date and grace have passed in silence.
-- Arguments: $1 now, $2 limit.
-- Result: held instances with fpops_est_flop, earliest timeout_at first.
SELECT
    instance.instance_id, instance.job_id, instance.batch_id, instance.job_class_id, instance.app_version_id,
    instance.host_id, instance.volunteer_id, instance.sent_at, instance.due_at, instance.est_runtime_s, instance.tight,
    instance.gated,
    app.name AS app_name, job.state <> 'open' AS no_longer_needed,
    coalesce(batch.median_turnaround_s, app.turnaround_s_per_flop * job_class.fpops_est_flop) AS median_turnaround_s,
    job_class.fpops_est_flop
FROM (
    SELECT *
    FROM instance
    WHERE state = 'in_progress' AND timeout_at <= $1
    ORDER BY timeout_at, instance_id
    LIMIT $2
) AS instance
JOIN job ON job.job_id = instance.job_id
JOIN job_class ON job_class.job_class_id = instance.job_class_id
JOIN batch ON batch.batch_id = instance.batch_id
JOIN app ON app.app_id = batch.app_id
ORDER BY instance.timeout_at, instance.instance_id;
