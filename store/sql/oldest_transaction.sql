-- Purpose: of the other sessions of this database, the one whose transaction is the oldest.
-- Arguments: none.
-- Result: pid, application_name and xact_start; no row where none is in a transaction.
SELECT pid, application_name, xact_start
FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL
ORDER BY xact_start, pid
LIMIT 1;
