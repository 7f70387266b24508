-- Purpose: give a new app version its predecessor's statistics (POLICY 4.3): the highest older version of the same
--   app, platform and plan class. At most 11 consecutive valid results are copied; each kind of sums is scaled
--   down to 5 samples, so that new evidence takes over. What happened to the old version is not counted again.
-- Arguments: $1 app_version_id.
-- Result: none.
INSERT INTO host_app_version (
    host_id, app_version_id, consecutive_valid, quota_per_day, stats_at,
    speed_n, speed_sum, speed_sum_sq, tight_n, tight_sum, tight_sum_sq, relaxed_n, relaxed_sum, relaxed_sum_sq,
    log_n, log_sum, log_sum_sq, tight_missed_n, clean_since_at, inherited_from
)
SELECT
    hav.host_id, $1::int, least(hav.consecutive_valid, 11), hav.quota_per_day, hav.stats_at,
    hav.speed_n * kept.speed, hav.speed_sum * kept.speed, hav.speed_sum_sq * kept.speed,
    hav.tight_n * kept.tight, hav.tight_sum * kept.tight, hav.tight_sum_sq * kept.tight,
    hav.relaxed_n * kept.relaxed, hav.relaxed_sum * kept.relaxed, hav.relaxed_sum_sq * kept.relaxed,
    least(hav.log_n, 5), hav.log_sum * kept.log, hav.log_sum_sq * kept.log,
    hav.tight_missed_n * kept.tight, hav.clean_since_at, predecessor.app_version_id
FROM (
    SELECT old.app_version_id
    FROM app_version AS new
    JOIN app_version AS old USING (app_id, platform, plan_class)
    WHERE new.app_version_id = $1 AND old.version_num < new.version_num
    ORDER BY old.version_num DESC
    LIMIT 1
) AS predecessor
JOIN host_app_version AS hav USING (app_version_id)
CROSS JOIN LATERAL (
    SELECT
        least(1, 5 / nullif(hav.speed_n, 0)) AS speed,
        least(1, 5 / nullif(hav.tight_n, 0)) AS tight,
        least(1, 5 / nullif(hav.relaxed_n, 0)) AS relaxed,
        least(1, 5 / nullif(hav.log_n::double precision, 0)) AS log
) AS kept
ORDER BY hav.host_id
ON CONFLICT (host_id, app_version_id) DO NOTHING;
