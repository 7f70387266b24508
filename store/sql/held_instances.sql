-- Purpose: what a host has in progress.
-- Arguments: $1 host_id, $2 limit.
-- Result: instances by due_at and id, with the name of their app.
SELECT
    instance.instance_id, instance.job_id, instance.batch_id, instance.host_id, instance.sent_at, instance.due_at,
    instance.est_runtime_s, instance.tight, app.name AS app_name
FROM instance
JOIN batch ON batch.batch_id = instance.batch_id
JOIN app ON app.app_id = batch.app_id
WHERE instance.host_id = $1 AND instance.state = 'in_progress'
ORDER BY instance.due_at, instance.instance_id
LIMIT $2;
