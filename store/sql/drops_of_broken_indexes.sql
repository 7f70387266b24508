-- Purpose: how to drop what a broken-off CREATE INDEX CONCURRENTLY has left behind: an index that is written and not read.
-- Arguments: $1 names of indexes.
-- Result: statement, one for each of these that is not valid.
SELECT format('DROP INDEX CONCURRENTLY %s', indexrelid::regclass) AS statement
FROM unnest($1::text[]) AS wanted (name)
JOIN pg_index ON pg_index.indexrelid = to_regclass(wanted.name)
WHERE NOT pg_index.indisvalid
ORDER BY wanted.name;
