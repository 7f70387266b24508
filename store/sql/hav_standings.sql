-- Purpose: how hosts that called lately stand with some app versions, and how often they call. In any order.
-- Arguments: $1 app_version_ids with commas between them, $2 since when a host has called, $3 the present instant.
-- Result: the fields of domain/insight.py STANDING_FIELDS, none of them null.
SELECT
    hav.host_id, host.volunteer_id, hav.app_version_id, hav.consecutive_valid,
    hav.consecutive_valid = 0 AND (hav.clean_since_at IS NOT NULL OR hav.n_error + hav.n_timeout > 0) AS failed,
    hav.stats_at, hav.relaxed_n, hav.relaxed_sum, hav.tight_n, hav.tight_missed_n,
    coalesce(hav.clean_since_at, 'NaN') AS clean_since_at,
    CASE
        WHEN host.rpc_interval_s IS NULL THEN 0
        ELSE 3600 / greatest(host.rpc_interval_s, ($3::double precision - host.last_rpc_at) / 3, 1)
    END AS calls_per_hour
FROM host_app_version AS hav
JOIN host USING (host_id)
WHERE hav.app_version_id = ANY(string_to_array($1::text, ',')::int[]) AND host.last_rpc_at >= $2::double precision
