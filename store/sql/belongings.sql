-- name: held_of_volunteer
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


-- name: host_of_volunteer
-- Purpose: one of a volunteer's computers.
-- Arguments: $1 volunteer_id, $2 host_id.
-- Result: the host with in_progress; no row when there is none, or it is somebody else's.
SELECT
    host.*,
    (SELECT count(*) FROM instance WHERE instance.host_id = host.host_id AND instance.state = 'in_progress') AS in_progress
FROM host
WHERE host.host_id = $2::bigint AND host.volunteer_id + 0 = $1;


-- name: hosts_of_volunteer
-- Purpose: a volunteer's computers, newest first, with how much each has in progress.
-- Arguments: $1 volunteer_id, $2 host_id before which to go on, $3 limit.
-- Result: hosts by id, descending, with in_progress.
SELECT
    host.*,
    (SELECT count(*) FROM instance WHERE instance.host_id = host.host_id AND instance.state = 'in_progress') AS in_progress
FROM (
    SELECT *
    FROM host AS own
    WHERE own.volunteer_id = $1 AND own.host_id + 0 < $2  -- not by the key: that would go through everybody's hosts
    ORDER BY own.host_id + 0 DESC
    LIMIT $3
) AS host
ORDER BY host.host_id DESC;


-- name: results_of_volunteer
-- Purpose: a volunteer's results that are over, the last one sent first. Those of the history are left out.
-- Arguments: $1 volunteer_id, $2 and $3 sent_at and instance_id behind which to go on, $4 how many are looked at, $5 host_id or
--   null for all, $6 states or null for all, $7 limit.
-- Result: instances with the name of their app.
SELECT
    own.instance_id, own.batch_id, own.host_id, own.state, own.sent_at, own.due_at, own.reported_at, own.elapsed_s, own.reason,
    app.name AS app_name
FROM (
    SELECT *
    FROM (
        SELECT *
        FROM instance
        WHERE instance.volunteer_id = $1
            AND instance.state NOT IN ('unsent', 'in_progress', 'cancelled')
            AND (instance.sent_at, instance.instance_id) < ($2, $3::bigint)
        ORDER BY instance.sent_at DESC, instance.instance_id DESC
        LIMIT $4
    ) AS looked_at
    WHERE ($5::int IS NULL OR looked_at.host_id = $5) AND ($6::text[] IS NULL OR looked_at.state = ANY($6))
    ORDER BY looked_at.sent_at DESC, looked_at.instance_id DESC
    LIMIT $7
) AS own
JOIN batch ON batch.batch_id = own.batch_id
JOIN app ON app.app_id = batch.app_id
ORDER BY own.sent_at DESC, own.instance_id DESC;


-- name: totals_of_volunteer
-- Purpose: all that a volunteer's computers ever did, and have now.
-- Arguments: $1 volunteer_id.
-- Result: one row of counts.
SELECT
    (SELECT count(*) FROM host WHERE host.volunteer_id = $1) AS hosts,
    (
        SELECT count(*)
        FROM host
        JOIN instance ON instance.host_id = host.host_id AND instance.state = 'in_progress'
        WHERE host.volunteer_id = $1
    ) AS in_progress,
    coalesce(sum(hav.n_valid), 0) AS valid, coalesce(sum(hav.n_error), 0) AS failed, coalesce(sum(hav.n_timeout), 0) AS late
FROM host
JOIN host_app_version AS hav ON hav.host_id = host.host_id
WHERE host.volunteer_id = $1;
