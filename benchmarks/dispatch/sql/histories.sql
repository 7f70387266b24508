-- Purpose: what hosts 1 to $1 did with a version so far. Long histories: what a run adds to them moves nothing.
--   Speeds are log-normal around 1e9 flop/s, ln(turnaround / R) is normal, up to 40 valid results in a row.
-- Arguments: $1 how many, $2 app_version_id, $3 stats_at, $4 quota_per_day, $5 n_valid.
-- Result: none.
INSERT INTO host_app_version (
    host_id, app_version_id, consecutive_valid, quota_per_day, stats_at, speed_n, speed_sum, speed_sum_sq, tight_n,
    tight_sum, tight_sum_sq, relaxed_n, relaxed_sum, relaxed_sum_sq, log_n, log_sum, log_sum_sq, n_valid, n_due
)
SELECT
    n, $2::int, consecutive_valid, $4::int, $3::double precision,
    200, 200 * speed, 200 * 1.01 * speed ^ 2,
    50, 50 * tight, 50 * (tight ^ 2 + 0.1),
    200, 200 * relaxed, 200 * (relaxed ^ 2 + 0.2),
    250, 250 * (relaxed + ln(3600)), 250 * ((relaxed + ln(3600)) ^ 2 + 0.2),
    $5::bigint, 250
FROM (
    SELECT
        n, floor(40 * random())::int AS consecutive_valid, 1e-9 * exp(random_normal(0, 0.5)) AS speed,
        random_normal(0.3, 0.3) AS tight, random_normal(0.6, 0.4) AS relaxed
    FROM generate_series(1, $1::int) AS n
) AS host
ORDER BY n;
