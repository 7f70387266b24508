-- Purpose: add to n_due of hosts' app versions the instances that fell due, or take off what a clock that was ahead had counted.
-- Arguments: $1 since (excluded), $2 until (included), $3 1 to add them, -1 to take them off: not below 0.
-- Result: counted, the number of instances.
WITH due AS (
    SELECT host_id, app_version_id, count(*) AS count
    FROM instance
    WHERE due_at > $1 AND due_at <= $2
    GROUP BY host_id, app_version_id
),
locked AS (
    SELECT hav.host_id, hav.app_version_id, due.count
    FROM host_app_version AS hav
    JOIN due USING (host_id, app_version_id)
    ORDER BY hav.host_id, hav.app_version_id
    FOR NO KEY UPDATE OF hav
),
changed AS (
    UPDATE host_app_version SET n_due = greatest(0, host_app_version.n_due + $3::int * locked.count)
    FROM locked
    WHERE host_app_version.host_id = locked.host_id AND host_app_version.app_version_id = locked.app_version_id
)
SELECT coalesce(sum(count), 0)::bigint AS counted FROM due;
