-- name: count_stopped_batches
-- Purpose: count the active batches of some work that have fresh unsent instances, also paused and blocked ones. Reads
--   all waiting batches.
-- Arguments: $1 kind of the work, $2 its name.
-- Result: batches.
SELECT count(*) AS batches
FROM batch
WHERE
    state = 'active'
    AND waiting
    AND $2::text = CASE $1::text
        WHEN 'batch' THEN batch_id::text
        WHEN 'app' THEN app_id::text
        WHEN 'queue' THEN queue
    END
    AND EXISTS (
        SELECT FROM instance
        WHERE instance.batch_id = batch.batch_id AND instance.state = 'unsent' AND NOT instance.urgent
    );


-- name: drop_restriction
-- Purpose: lift a restriction.
-- Arguments: $1 kind, $2 name.
-- Result: set_at; no row when there is none.
DELETE FROM restriction WHERE kind = $1 AND name = $2 RETURNING set_at;


-- name: find_volunteers
-- Purpose: return the volunteers with a text in their e-mail or name, or with a host that has it in the name that its
--   client reports, or whose address is that text. Reads every volunteer and host.
-- Arguments: $1 pattern, $2 text (both lower case), $3 volunteer_id before which to start, $4 limit.
-- Result: volunteer_id, newest first.
SELECT volunteer_id
FROM (
    SELECT volunteer_id FROM volunteer WHERE email LIKE $1 OR lower(name) LIKE $1
    UNION
    SELECT volunteer_id FROM host WHERE lower(domain_name) LIKE $1 OR network = $2
) AS found
WHERE volunteer_id < $3
ORDER BY volunteer_id DESC
LIMIT $4;


-- name: lock_in_progress
-- Purpose: lock some instances in progress on a host, or on the hosts of a volunteer.
-- Arguments: $1 host_id or null, $2 volunteer_id or null, $3 limit.
-- Result: instance_id, ascending.
SELECT instance_id
FROM instance
WHERE state = 'in_progress'
    AND host_id = ANY(ARRAY(
        SELECT $1::int WHERE $1 IS NOT NULL
        UNION ALL
        SELECT host_id FROM host WHERE volunteer_id = $2
    ))
ORDER BY instance_id
LIMIT $3
FOR UPDATE;


-- name: list_restrictions
-- Purpose: return every restriction; pauses of batches only while these are active.
-- Arguments: none.
-- Result: restrictions, latest first.
SELECT kind, restriction.name, max_jobs, why, set_by, set_at, abort
FROM restriction
LEFT JOIN batch ON batch.batch_id = CASE WHEN kind = 'batch' THEN restriction.name::bigint END
WHERE kind <> 'batch' OR batch.state = 'active'
ORDER BY set_at DESC, kind, restriction.name;


-- name: newest_volunteers
-- Purpose: return the newest volunteers.
-- Arguments: $1 volunteer_id before which to start, $2 limit.
-- Result: volunteer_id, newest first.
SELECT volunteer_id FROM volunteer WHERE volunteer_id < $1 ORDER BY volunteer_id DESC LIMIT $2;


-- name: paused_among
-- Purpose: return which of some batches are paused.
-- Arguments: $1 batch_ids.
-- Result: name.
SELECT name FROM restriction WHERE kind = 'batch' AND name = ANY($1::bigint[]::text[]);


-- name: put_restriction
-- Purpose: insert or replace a restriction. One with the same maximum number of jobs keeps the time when it began.
-- Arguments: $1 kind, $2 name, $3 max_jobs, $4 why, $5 set_by, $6 set_at, $7 abort.
-- Result: set_at.
INSERT INTO restriction (kind, name, max_jobs, why, set_by, set_at, abort)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (kind, name) DO UPDATE SET
    max_jobs = excluded.max_jobs, why = excluded.why, set_by = excluded.set_by, abort = excluded.abort,
    set_at = CASE WHEN restriction.max_jobs = excluded.max_jobs THEN restriction.set_at ELSE excluded.set_at END
RETURNING set_at;


-- name: volunteers_with
-- Purpose: return volunteers with their number of hosts and credit.
-- Arguments: $1 volunteer_ids.
-- Result: volunteer_id, email, name, created_at, hosts, last_rpc_at (null without a host), credit, newest first.
SELECT
    volunteer.volunteer_id, volunteer.email, volunteer.name, volunteer.created_at, owned.hosts, owned.last_rpc_at,
    coalesce(credit.total, 0) AS credit
FROM volunteer
CROSS JOIN LATERAL (
    SELECT count(*) AS hosts, max(host.last_rpc_at) AS last_rpc_at
    FROM host
    WHERE host.volunteer_id = volunteer.volunteer_id
) AS owned
LEFT JOIN credit ON credit.kind = 'volunteer' AND credit.id = volunteer.volunteer_id
WHERE volunteer.volunteer_id = ANY($1::int[])
ORDER BY volunteer.volunteer_id DESC;
