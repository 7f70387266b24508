-- Purpose: who holds shards, and which workers live.
-- Arguments: $1 class.
-- Result: me, workers, and taken, the shards somebody holds; me and workers are process ids, ascending.
SELECT
    pg_backend_pid() AS me,
    coalesce(array_agg(pid ORDER BY pid) FILTER (WHERE objid = 4294967295), '{}') AS workers,
    coalesce(array_agg(objid::bigint ORDER BY objid::bigint) FILTER (WHERE objid <> 4294967295), '{}') AS taken
FROM pg_locks
WHERE locktype = 'advisory'
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND classid::bigint = $1
    AND objsubid = 2
    AND granted;
