-- Purpose: count jobs as sent on a day; nothing is counted once a later day has begun.
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
