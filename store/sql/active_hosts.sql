-- Purpose: hosts that called lately: what they have (sql/equipment_of_hosts.sql), and how often they call. In any order.
-- Arguments: $1 since when a host has called, $2 the present instant.
-- Result: host_id, equipment, calls_per_hour, none of them null.
SELECT
    host_id, hashtextextended(platforms::text || jsonb_path_query_array(coprocessors, '$[*].type')::text, 0) AS equipment,
    CASE
        WHEN rpc_interval_s IS NULL THEN 0
        ELSE 3600 / greatest(rpc_interval_s, ($2::double precision - last_rpc_at) / 3, 1)
    END AS calls_per_hour
FROM host
WHERE last_rpc_at >= $1::double precision
