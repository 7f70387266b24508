-- name: tables
-- Purpose: how large some tables and their indexes are, and how much of them is dead.
-- Arguments: $1 names of tables.
-- Result: name, live, dead (rows, as PostgreSQL's statistics have it), table_bytes, index_bytes (a JSON object by the
-- name of the index), by name.
SELECT
    stats.relname::text AS name,
    stats.n_live_tup AS live,
    stats.n_dead_tup AS dead,
    pg_table_size(stats.relid) AS table_bytes,
    (
        SELECT coalesce(jsonb_object_agg(pg_class.relname, pg_relation_size(pg_index.indexrelid)), '{}')
        FROM pg_index
        JOIN pg_class ON pg_class.oid = pg_index.indexrelid
        WHERE pg_index.indrelid = stats.relid
    )::text AS index_bytes
FROM pg_stat_user_tables AS stats
WHERE stats.schemaname = current_schema() AND stats.relname = ANY($1::text[])
ORDER BY stats.relname;
