-- Purpose: lock quotas, in the order of their names, as of a day: a new day begins with no job sent, and
--   a quota that was not drawn on for long starts again.
-- Arguments: $1 names, $2 day, $3 days that what was earned is kept.
-- Result: name, earned, day and sent of each.
INSERT INTO shared_quota (name, day)
SELECT name, $2::int FROM unnest($1::text[]) AS asked (name) ORDER BY name
ON CONFLICT (name) DO UPDATE SET
    earned = CASE WHEN shared_quota.day < excluded.day - $3::int THEN 0 ELSE shared_quota.earned END,
    day = greatest(shared_quota.day, excluded.day),
    sent = CASE WHEN shared_quota.day < excluded.day THEN 0 ELSE shared_quota.sent END
RETURNING name, earned, day, sent;
