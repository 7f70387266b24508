-- Purpose: what a volunteer's computers have in progress.
-- Arguments: $1 volunteer_id, $2 host_id or null for all, $3 limit.
-- Result: instances by due_at and id, with the name of their app.
SELECT
    instance.instance_id, instance.job_id, instance.batch_id, instance.host_id, instance.sent_at, instance.due_at,
    instance.est_runtime_s, instance.tight, app.name AS app_name
FROM host
JOIN instance ON instance.host_id = host.host_id AND instance.state = 'in_progress'
JOIN batch ON batch.batch_id = instance.batch_id
JOIN app ON app.app_id = batch.app_id
WHERE host.volunteer_id = $1 AND ($2::int IS NULL OR host.host_id = $2)
ORDER BY instance.due_at, instance.instance_id
LIMIT $3;
