-- Purpose: forget quotas that nobody drew on for long. One that is in use is left for the next time.
-- Arguments: $1 day before which.
-- Result: none.
DELETE FROM shared_quota
WHERE name IN (SELECT name FROM shared_quota WHERE day < $1 FOR UPDATE SKIP LOCKED);
