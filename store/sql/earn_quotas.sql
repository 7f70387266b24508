-- Purpose: set what results have earned quotas that the transaction has locked.
-- Arguments: $1 names, $2 earned (arrays).
-- Result: none.
UPDATE shared_quota SET earned = moved.earned
FROM unnest($1::text[], $2::int[]) AS moved (name, earned)
WHERE shared_quota.name = moved.name;
