-- Purpose: lock quotas, in the order of their names; those that do not exist are left out.
-- Arguments: $1 names.
-- Result: name and earned of each.
SELECT name, earned FROM shared_quota WHERE name = ANY($1::text[]) ORDER BY name FOR UPDATE;
