-- Purpose: who holds shards, and how many workers live.
-- Arguments: $1 class.
-- Result: workers, and taken, the shards somebody holds.
SELECT
    count(*) FILTER (WHERE objid = 4294967295) AS workers,
    coalesce(array_agg(objid::bigint ORDER BY objid::bigint) FILTER (WHERE objid <> 4294967295), '{}') AS taken
FROM pg_locks
WHERE locktype = 'advisory'
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND classid::bigint = $1
    AND objsubid = 2
    AND granted;
