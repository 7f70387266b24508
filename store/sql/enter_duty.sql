-- Purpose: whether a session still holds the lock of a background duty; until the end of the transaction nobody else
-- can take it then (try_duty_lock.sql). The shared lock is taken before the holders are read.
-- Arguments: $1 name of the duty; $2 process id of the session.
-- Result: held.
SELECT entered.is_free AND EXISTS (
    SELECT FROM pg_locks
    WHERE entered.is_free
        AND locktype = 'advisory'
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND classid = 1297437780
        AND objid::bigint = hashtext($1)::bigint & 4294967295
        AND objsubid = 2
        AND granted
        AND pid = $2
) AS held
FROM (SELECT pg_try_advisory_xact_lock_shared(1297437781, hashtext($1)) AS is_free OFFSET 0) AS entered;
