-- Purpose: what hosts that called lately have that decides which app versions they could run.
-- Arguments: $1 since when a host has called.
-- Result: equipment (sql/active_hosts.sql), platforms, coprocessors (JSON, the types of the present ones).
SELECT
    hashtextextended(platforms::text || types::text, 0) AS equipment, platforms, types AS coprocessors
FROM (
    SELECT DISTINCT platforms, jsonb_path_query_array(coprocessors, '$[*].type') AS types
    FROM host
    WHERE last_rpc_at >= $1::double precision
) AS found
ORDER BY platforms, types;
