-- name: bulk_session
-- Purpose: let this connection read and write whole tables: the other connections' settings favour look-ups by key.
-- Arguments: none.
-- Result: none.
SET enable_seqscan = on;
SET enable_hashjoin = on;
SET enable_mergejoin = on;
SET work_mem = '128MB';
SET maintenance_work_mem = '256MB';


-- name: connection_alive
-- Purpose: check that the connection works.
-- Arguments: none.
-- Result: alive, true.
SELECT true AS alive;


-- name: database_now
-- Purpose: return the database's clock, to compare a node's with; no other query reads the database's time.
-- Arguments: none.
-- Result: database_now, seconds since the epoch.
SELECT extract(epoch FROM clock_timestamp())::double precision AS database_now;


-- name: duty_holders
-- Purpose: return the sessions that hold the lock of a periodic task.
-- Arguments: $1 name of the task.
-- Result: pids, an array of the sessions' process ids, ascending.
SELECT coalesce(array_agg(pid ORDER BY pid), '{}') AS pids
FROM pg_locks
WHERE locktype = 'advisory'
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND classid = 1297437780
    AND objid::bigint = hashtext($1)::bigint & 4294967295
    AND objsubid = 2
    AND granted;


-- name: enter_duty
-- Purpose: return whether a session still holds the lock of a periodic task; until the end of the transaction no
--   other session can take it alone (try_duty_lock.sql). The shared lock is taken before the holders are read.
-- Arguments: $1 name of the task; $2 process id of the session.
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


-- name: give_up_duty
-- Purpose: release the session lock of a periodic task.
-- Arguments: $1 name of the task.
-- Result: given_up, false where this connection did not hold it.
SELECT pg_advisory_unlock(1297437780, hashtext($1)) AS given_up;


-- name: give_up_share
-- Purpose: release the shared session lock of a periodic task.
-- Arguments: $1 name of the task.
-- Result: given_up, false where this connection did not hold it.
SELECT pg_advisory_unlock_shared(1297437780, hashtext($1)) AS given_up;


-- name: release_claim
-- Purpose: release a claimed batch.
-- Arguments: $1 batch_id.
-- Result: released.
SELECT pg_advisory_unlock(1297437781, ($1::bigint % 2147483647)::int) AS released;


-- name: session_pid
-- Purpose: return the server process of this connection; a connection pooler reports a different one.
-- Arguments: none.
-- Result: pid.
SELECT pg_backend_pid() AS pid;


-- name: try_claim
-- Purpose: claim a batch for a forecast, unless another connection has claimed it; held until released or the
--   connection ends.
-- Arguments: $1 batch_id.
-- Result: claimed.
SELECT pg_try_advisory_lock(1297437781, ($1::bigint % 2147483647)::int) AS claimed;


-- name: try_duty_lock
-- Purpose: take the session lock of a periodic task, so that it runs once per cluster; fails during a transaction of
--   the previous holder (enter_duty.sql).
-- Arguments: $1 name of the task.
-- Result: locked.
SELECT CASE
    WHEN NOT pg_try_advisory_lock(1297437780, hashtext($1)) THEN false
    WHEN pg_try_advisory_xact_lock(1297437781, hashtext($1)) THEN true
    ELSE NOT pg_advisory_unlock(1297437780, hashtext($1))
END AS locked;


-- name: try_share
-- Purpose: take a share of the session lock of a periodic task; fails while a session holds the lock alone.
-- Arguments: $1 name of the task.
-- Result: shared.
SELECT pg_try_advisory_lock_shared(1297437780, hashtext($1)) AS shared;
