-- Take the session lock of a background duty, so that it runs once per cluster.
--   $1 text  name of the duty
-- returns locked
SELECT pg_try_advisory_lock(1297437780, hashtext($1)) AS locked;
