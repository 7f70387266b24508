-- name: shards
-- Purpose: how many shards each live worker holds.
-- Arguments: $1 class of the advisory locks.
-- Result: held, one row for each worker.
SELECT count(*) FILTER (WHERE objid <> 4294967295) AS held
FROM pg_locks
WHERE locktype = 'advisory'
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND classid::bigint = $1
    AND objsubid = 2
    AND granted
GROUP BY pid
HAVING count(*) FILTER (WHERE objid = 4294967295) > 0;
