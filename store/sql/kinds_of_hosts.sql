-- Purpose: of what kinds hosts that called lately are: what decides which app versions they could run.
-- Arguments: $1 since when a host has called.
-- Result: kind (sql/active_hosts.sql), platforms, coprocessors (JSON, the types of the present ones).
SELECT
    hashtextextended(platforms::text || types::text, 0) AS kind, platforms, types AS coprocessors
FROM (
    SELECT DISTINCT platforms, jsonb_path_query_array(coprocessors, '$[*].type') AS types
    FROM host
    WHERE last_rpc_at >= $1::double precision
) AS kinds
ORDER BY platforms, types;
