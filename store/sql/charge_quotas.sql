-- Purpose: count jobs as sent on a day; nothing is counted once a later day has begun.
-- Arguments: $1 names of quotas, $2 day, $3 jobs, below 0 to take back.
-- Result: none.
UPDATE shared_quota SET sent = greatest(0, shared_quota.sent + $3::int)
FROM (SELECT name FROM shared_quota WHERE name = ANY($1::text[]) ORDER BY name FOR UPDATE) AS locked
WHERE shared_quota.name = locked.name AND shared_quota.day = $2;
