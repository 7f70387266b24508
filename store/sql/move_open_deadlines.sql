-- Purpose: move the due dates of instances in progress that were not overdue at an instant. One whose due date was counted
--   and now lies ahead again is taken off its n_due.
-- Arguments: $1 by_s, $2 the instant, $3 until when due dates were counted.
-- Result: moved, the number of instances.
WITH locked AS (
    SELECT instance_id, due_at
    FROM instance
    WHERE state = 'in_progress' AND timeout_at > $2
    ORDER BY instance_id
    FOR UPDATE
),
moved AS (
    UPDATE instance SET due_at = instance.due_at + $1, timeout_at = instance.timeout_at + $1
    FROM locked
    WHERE instance.instance_id = locked.instance_id AND instance.state = 'in_progress'
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
SELECT count(*) AS moved FROM moved;
