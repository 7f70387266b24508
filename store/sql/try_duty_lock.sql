-- Purpose: take the session lock of a background duty, so that it runs once per cluster; not while a transaction of
-- the process that had it before is under way (enter_duty.sql).
-- Arguments: $1 name of the duty.
-- Result: locked.
SELECT CASE
    WHEN NOT pg_try_advisory_lock(1297437780, hashtext($1)) THEN false
    WHEN pg_try_advisory_xact_lock(1297437781, hashtext($1)) THEN true
    ELSE NOT pg_advisory_unlock(1297437780, hashtext($1))
END AS locked;
