-- Purpose: take the session lock of a background duty, so that it runs once per cluster.
-- Arguments: $1 name of the duty.
-- Result: locked.
SELECT pg_try_advisory_lock(1297437780, hashtext($1)) AS locked;
