-- Purpose: lock quotas, in the order of their names, as of a day: a new day begins with no job sent.
-- Arguments: $1 names, $2 day.
-- Result: name, earned and sent of each.
INSERT INTO shared_quota (name, day)
SELECT name, $2::int FROM unnest($1::text[]) AS asked (name) ORDER BY name
ON CONFLICT (name) DO UPDATE SET
    day = greatest(shared_quota.day, excluded.day),
    sent = CASE WHEN shared_quota.day < excluded.day THEN 0 ELSE shared_quota.sent END
RETURNING name, earned, sent;
