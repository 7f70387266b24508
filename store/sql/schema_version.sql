-- Purpose: the migrations a database has had.
-- Arguments: none.
-- Result: version, ascending.
SELECT version FROM schema_version ORDER BY version;
