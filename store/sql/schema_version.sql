-- Purpose: the migrations a database has had.
-- Arguments: none.
-- Result: version and name, ascending.
SELECT version, name FROM schema_version ORDER BY version;
