-- name: charge_quotas
-- Purpose: count jobs as sent on a day; ignored once a later day has begun.
-- Arguments: $1 names of quotas, $2 jobs of each, below 0 to take back (arrays), $3 day.
-- Result: none.
UPDATE shared_quota SET sent = greatest(0, shared_quota.sent + locked.jobs)
FROM (
    SELECT quota.name, charge.jobs
    FROM unnest($1::text[], $2::int[]) AS charge (name, jobs)
    JOIN shared_quota AS quota ON quota.name = charge.name
    ORDER BY quota.name
    FOR UPDATE OF quota
) AS locked
WHERE shared_quota.name = locked.name AND shared_quota.day = $3;


-- name: earn_quotas
-- Purpose: set the earned amounts of locked quotas.
-- Arguments: $1 names, $2 earned (arrays).
-- Result: none.
UPDATE shared_quota SET earned = moved.earned
FROM unnest($1::text[], $2::int[]) AS moved (name, earned)
WHERE shared_quota.name = moved.name;


-- name: forget_quotas
-- Purpose: delete quotas that have not been used for long. Locked ones are skipped.
-- Arguments: $1 day before which.
-- Result: none.
DELETE FROM shared_quota
WHERE name IN (SELECT name FROM shared_quota WHERE day < $1 FOR UPDATE SKIP LOCKED);


-- name: lock_quotas
-- Purpose: lock quotas, in the order of their names; those that do not exist are left out.
-- Arguments: $1 names.
-- Result: name and earned of each.
SELECT name, earned FROM shared_quota WHERE name = ANY($1::text[]) ORDER BY name FOR UPDATE;


-- name: note_networks
-- Purpose: record from which network hosts last used their shared quotas.
-- Arguments: $1 host_ids, $2 networks (arrays, the host_ids distinct).
-- Result: none.
UPDATE host SET network = moved.network
FROM (
    SELECT host.host_id, said.network
    FROM unnest($1::int[], $2::text[]) AS said (host_id, network)
    JOIN host ON host.host_id = said.host_id
    WHERE host.network <> said.network
    ORDER BY host.host_id
    FOR NO KEY UPDATE OF host
) AS moved
WHERE host.host_id = moved.host_id;


-- name: open_quotas
-- Purpose: lock quotas, in the order of their names, as of a day: a new day begins with no jobs sent, and a quota
--   that was not used for long starts again.
-- Arguments: $1 names, $2 day, $3 days that what was earned is kept.
-- Result: name, earned, day and sent of each.
INSERT INTO shared_quota (name, day)
SELECT name, $2::int FROM unnest($1::text[]) AS asked (name) ORDER BY name
ON CONFLICT (name) DO UPDATE SET
    earned = CASE WHEN shared_quota.day < excluded.day - $3::int THEN 0 ELSE shared_quota.earned END,
    day = greatest(shared_quota.day, excluded.day),
    sent = CASE WHEN shared_quota.day < excluded.day THEN 0 ELSE shared_quota.sent END
RETURNING name, earned, day, sent;


-- name: quotas_of_hosts
-- Purpose: return the accounts and networks of hosts, with the accounts' quotas. Takes no locks.
-- Arguments: $1 host_ids.
-- Result: host_id, volunteer_id, network and earned, of the hosts whose account has drawn on its quota; in order.
SELECT host.host_id, host.volunteer_id, host.network, quota.earned
FROM host
JOIN shared_quota AS quota ON quota.name = 'volunteer ' || host.volunteer_id
WHERE host.host_id = ANY($1::int[])
ORDER BY host.host_id;
