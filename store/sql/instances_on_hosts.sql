-- Purpose: what hosts have in progress.
-- Arguments: $1 host_ids.
-- Result: held instances by host and id.
SELECT
    instance.instance_id, instance.job_id, instance.batch_id, instance.job_class_id, instance.app_version_id,
    instance.host_id, instance.volunteer_id, instance.sent_at, instance.due_at, instance.est_runtime_s, instance.tight,
    app.name AS app_name, job.state <> 'open' AS no_longer_needed
FROM instance
JOIN job ON job.job_id = instance.job_id
JOIN batch ON batch.batch_id = instance.batch_id
JOIN app ON app.app_id = batch.app_id
WHERE instance.host_id = ANY($1::int[]) AND instance.state = 'in_progress'
ORDER BY instance.host_id, instance.instance_id;
