-- name: count_sessions
-- Purpose: how many other sessions of ours a database has.
-- Arguments: none.
-- Result: sessions.
SELECT count(*) AS sessions
FROM pg_stat_activity
WHERE datname = current_database() AND application_name = current_setting('application_name') AND pid <> pg_backend_pid();


-- name: drops_of_broken_indexes
-- Purpose: how to drop what a broken-off CREATE INDEX CONCURRENTLY has left behind: an index that is written and not read.
-- Arguments: $1 names of indexes.
-- Result: statement, one for each of these that is not valid.
SELECT format('DROP INDEX CONCURRENTLY %s', indexrelid::regclass) AS statement
FROM unnest($1::text[]) AS wanted (name)
JOIN pg_index ON pg_index.indexrelid = to_regclass(wanted.name)
WHERE NOT pg_index.indisvalid
ORDER BY wanted.name;


-- name: insert_schema_version
-- Purpose: note a migration.
-- Arguments: $1 version, $2 name, $3 applied_at.
-- Result: none.
INSERT INTO schema_version (version, name, applied_at) VALUES ($1, $2, $3);


-- name: is_fresh
-- Purpose: whether a database has none of our tables.
-- Arguments: none.
-- Result: fresh.
SELECT to_regclass('schema_version') IS NULL AS fresh;


-- name: limit_build_wait
-- Purpose: let the statements of this session take as long as they need, and wait for so long at most for another
--   transaction. Nobody waits behind CREATE INDEX CONCURRENTLY but who changes the same table's shape.
-- Arguments: $1 milliseconds, as text.
-- Result: the settings.
SELECT set_config('lock_timeout', $1, false), set_config('statement_timeout', '0', false);


-- name: limit_lock_wait
-- Purpose: let a statement of this transaction wait for a lock for so long at most; what comes behind it in the queue waits too.
-- Arguments: $1 milliseconds, as text.
-- Result: the setting.
SELECT set_config('lock_timeout', $1, true);


-- name: lock_migrations
-- Purpose: ask for our turn to migrate; held until the connection ends. Where another has it, answers half a second later.
--   It does not wait for the lock: CREATE INDEX CONCURRENTLY, of whoever has it, waits for every statement that waits.
-- Arguments: none.
-- Result: ours.
SELECT CASE WHEN pg_try_advisory_lock(1297437783, 0) THEN true ELSE pg_sleep(0.5) IS NULL END AS ours;


-- name: oldest_transaction
-- Purpose: of the other sessions of this database, the one whose transaction is the oldest.
-- Arguments: none.
-- Result: pid, application_name and xact_start; no row where none is in a transaction.
SELECT pid, application_name, xact_start
FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL
ORDER BY xact_start, pid
LIMIT 1;


-- name: schema_version
-- Purpose: the migrations a database has had.
-- Arguments: none.
-- Result: version and name, ascending.
SELECT version, name FROM schema_version ORDER BY version;
