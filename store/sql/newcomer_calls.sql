-- Purpose: hosts that called lately, have no row for some app versions and could run one, and how often they call.
-- Arguments: $1 app_version_ids, $2 their platforms, both with commas between them, $3 the coprocessor type they need
--   (null = none), $4 since when a host has called, $5 the present instant.
-- Result: one row: hosts, calls_per_hour.
SELECT
    count(*) AS hosts,
    coalesce(sum(CASE
        WHEN host.rpc_interval_s IS NULL THEN 0
        ELSE 3600 / greatest(host.rpc_interval_s, ($5::double precision - host.last_rpc_at) / 3, 1)
    END), 0)::double precision AS calls_per_hour
FROM host
WHERE host.last_rpc_at >= $4::double precision
    AND host.platforms && string_to_array($2::text, ',')
    AND ($3::text IS NULL OR host.coprocessors @> jsonb_build_array(jsonb_build_object('type', $3::text)))
    AND NOT EXISTS (
        SELECT
        FROM host_app_version AS hav
        WHERE hav.host_id = host.host_id AND hav.app_version_id = ANY(string_to_array($1::text, ',')::int[])
    );
