-- Purpose: where a host stood by the last full run of the host statistics.
-- Arguments: $1 host_id.
-- Result: host_id, app_version_id, p, x, y.
SELECT host_id, app_version_id, p, x, y
FROM host_percentile
WHERE
    host_id = $1
    AND generation = (
        SELECT generation FROM percentile_generation
        WHERE complete AND with_percentiles ORDER BY generation DESC LIMIT 1
    )
ORDER BY app_version_id;
