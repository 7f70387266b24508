-- Purpose: (host, app version) in the slowest tenth of their population by the last full ranking, the slowest first.
-- Arguments: $1 to $3 x, host_id and app_version_id behind which to go on, $4 limit.
-- Result: host_id, app_version_id, x; relative, the turnaround over the usual one as of now, null while there is no sample.
SELECT
    slow.host_id, slow.app_version_id, slow.x,
    CASE WHEN hav.relaxed_n > 0 THEN exp(hav.relaxed_sum / hav.relaxed_n) END AS relative
FROM (
    SELECT host_id, app_version_id, x
    FROM host_percentile
    WHERE generation = (
            SELECT generation FROM percentile_generation
            WHERE complete AND with_percentiles ORDER BY generation DESC LIMIT 1
        )
        AND x < 0.1  -- as in the index
        AND (x, host_id, app_version_id) > ($1::real, $2::int, $3::int)
    ORDER BY x, host_id, app_version_id
    LIMIT $4
) AS slow
LEFT JOIN host_app_version AS hav ON hav.host_id = slow.host_id AND hav.app_version_id = slow.app_version_id
ORDER BY slow.x, slow.host_id, slow.app_version_id;
