-- Purpose: how many other sessions of ours a database has.
-- Arguments: none.
-- Result: sessions.
SELECT count(*) AS sessions
FROM pg_stat_activity
WHERE datname = current_database() AND application_name = current_setting('application_name') AND pid <> pg_backend_pid();
