-- Purpose: move the next due dates that an outage made unfair: of instances in progress that were sent before it and not
--   overdue when it began. They are taken by timeout_at descending: what was moved lies behind, and is not met again. One
--   whose due date was counted and now lies ahead again is taken off its n_due.
-- Arguments: $1 by_s, $2 alive_until, $3 until when due dates were counted, $4 timeout_at and $5 instance_id of the last one
--   looked at, $6 limit.
-- Result: moved, looked_at (how many), timeout_at and instance_id of the last one looked at (null when there was none).
WITH looked_at AS (
    SELECT instance_id, timeout_at
    FROM instance
    WHERE state = 'in_progress' AND timeout_at > $2 AND (timeout_at, instance_id) < ($4, $5::bigint) AND sent_at <= $2
    ORDER BY timeout_at DESC, instance_id DESC
    LIMIT $6
),
locked AS (
    SELECT instance.instance_id, instance.state, instance.due_at
    FROM looked_at
    JOIN instance ON instance.instance_id = looked_at.instance_id
    ORDER BY instance.instance_id
    FOR UPDATE OF instance
),
moved AS (
    UPDATE instance SET due_at = instance.due_at + $1, timeout_at = instance.timeout_at + $1
    FROM locked
    WHERE instance.instance_id = locked.instance_id AND locked.state = 'in_progress'
    RETURNING instance.host_id, instance.app_version_id, locked.due_at AS before_at, instance.due_at
),
ahead AS (
    SELECT host_id, app_version_id, count(*) AS count
    FROM moved
    WHERE before_at <= $3 AND due_at > $3
    GROUP BY host_id, app_version_id
),
locked_statistics AS (
    SELECT hav.host_id, hav.app_version_id, ahead.count
    FROM host_app_version AS hav
    JOIN ahead USING (host_id, app_version_id)
    ORDER BY hav.host_id, hav.app_version_id
    FOR NO KEY UPDATE OF hav
),
lowered AS (
    UPDATE host_app_version SET n_due = greatest(0, host_app_version.n_due - locked.count)
    FROM locked_statistics AS locked
    WHERE host_app_version.host_id = locked.host_id AND host_app_version.app_version_id = locked.app_version_id
)
SELECT
    (SELECT count(*) FROM moved) AS moved,
    (SELECT count(*) FROM looked_at) AS looked_at,
    last.timeout_at,
    last.instance_id
FROM (SELECT) AS always
LEFT JOIN (SELECT timeout_at, instance_id FROM looked_at ORDER BY timeout_at, instance_id LIMIT 1) AS last ON true;
