-- Purpose: how many sessions of processes that serve this project there are: workers and background processes hold advisory
--   locks as long as they run.
-- Arguments: none.
-- Result: sessions.
SELECT count(DISTINCT pid) AS sessions
FROM pg_locks
WHERE locktype = 'advisory'
    AND granted
    AND pid <> pg_backend_pid()
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database());
