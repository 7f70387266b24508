-- name: count_sessions
-- Purpose: count the other Muster sessions of a database.
-- Arguments: none.
-- Result: sessions.
SELECT count(*) AS sessions
FROM pg_stat_activity
WHERE datname = current_database() AND application_name = current_setting('application_name') AND pid <> pg_backend_pid();


-- name: drops_of_broken_indexes
-- Purpose: return statements that drop the invalid indexes left by an interrupted CREATE INDEX CONCURRENTLY.
-- Arguments: $1 names of indexes.
-- Result: statement, one for each of these that is not valid.
SELECT format('DROP INDEX CONCURRENTLY %s', indexrelid::regclass) AS statement
FROM unnest($1::text[]) AS wanted (name)
JOIN pg_index ON pg_index.indexrelid = to_regclass(wanted.name)
WHERE NOT pg_index.indisvalid
ORDER BY wanted.name;


-- name: insert_schema_version
-- Purpose: record a migration.
-- Arguments: $1 version, $2 name, $3 applied_at.
-- Result: none.
INSERT INTO schema_version (version, name, applied_at) VALUES ($1, $2, $3);


-- name: is_fresh
-- Purpose: return whether a database has none of Muster's tables.
-- Arguments: none.
-- Result: fresh.
SELECT to_regclass('schema_version') IS NULL AS fresh;


-- name: limit_build_wait
-- Purpose: remove the time limit of this connection's statements, and limit their wait for other transactions. Only
--   changes of the same table's schema wait behind CREATE INDEX CONCURRENTLY.
-- Arguments: $1 milliseconds, as text.
-- Result: the settings.
SELECT set_config('lock_timeout', $1, false), set_config('statement_timeout', '0', false);


-- name: limit_lock_wait
-- Purpose: limit the lock wait of this transaction's statements; statements queued behind them wait too.
-- Arguments: $1 milliseconds, as text.
-- Result: the setting.
SELECT set_config('lock_timeout', $1, true);


-- name: lock_migrations
-- Purpose: try to take the migration lock; held until the connection ends. If it is taken, reply after half a second.
--   It does not wait for the lock, because CREATE INDEX CONCURRENTLY in the lock's session waits for every waiting
--   statement.
-- Arguments: none.
-- Result: ours.
SELECT CASE WHEN pg_try_advisory_lock(1297437783, 0) THEN true ELSE pg_sleep(0.5) IS NULL END AS ours;


-- name: oldest_transaction
-- Purpose: return the other session of this database with the oldest transaction.
-- Arguments: none.
-- Result: pid, application_name and xact_start; no row where none is in a transaction.
SELECT pid, application_name, xact_start
FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL
ORDER BY xact_start, pid
LIMIT 1;


-- name: schema_version
-- Purpose: return the migrations applied to a database.
-- Arguments: none.
-- Result: version and name, ascending.
SELECT version, name FROM schema_version ORDER BY version;
