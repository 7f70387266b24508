-- Purpose: whether a database has none of our tables.
-- Arguments: none.
-- Result: fresh.
SELECT to_regclass('schema_version') IS NULL AS fresh;
