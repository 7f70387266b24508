-- Purpose: add to the statistics of hosts' app versions, as domain/havs.py does in memory: sums are brought forward to
--   the later instant first, each losing half its weight in 14 days (1209600 s). Rows are locked in key order.
-- Arguments: $1 host_ids, $2 app_version_ids, $3 at, $4 judged (whether there were events), $5 valid_reset, $6 valid_added,
--   $7 quota_factor, $8 quota_added, $9 to $11 speed, $12 to $14 tight, $15 to $17 relaxed (n, sum, sum_sq),
--   $18 to $20 log (n, sum, sum_sq), $21 n_valid, $22 n_error, $23 n_timeout, $24 day, $25 sent (arrays, keys
--   distinct), $26 quota_start, $27 quota_most.
-- Result: host_id and app_version_id of the rows that were there.
WITH locked AS (
    SELECT
        delta.*, greatest(hav.stats_at, delta.at) AS stats_at,
        -- 200 half-lives are nothing; more would underflow
        power(2::double precision, -least(200, greatest(0, delta.at - hav.stats_at) / 1209600)) AS weight
    FROM unnest(
        $1::int[], $2::int[], $3::double precision[], $4::boolean[], $5::boolean[], $6::int[], $7::double precision[],
        $8::int[], $9::double precision[], $10::double precision[], $11::double precision[], $12::double precision[],
        $13::double precision[], $14::double precision[], $15::double precision[], $16::double precision[],
        $17::double precision[], $18::bigint[], $19::double precision[], $20::double precision[], $21::bigint[],
        $22::bigint[], $23::bigint[], $24::int[], $25::int[]
    ) AS delta (
        host_id, app_version_id, at, judged, valid_reset, valid_added, quota_factor, quota_added, speed_n, speed_sum,
        speed_sum_sq, tight_n, tight_sum, tight_sum_sq, relaxed_n, relaxed_sum, relaxed_sum_sq, log_n, log_sum,
        log_sum_sq, n_valid, n_error, n_timeout, day, sent
    )
    JOIN host_app_version AS hav ON hav.host_id = delta.host_id AND hav.app_version_id = delta.app_version_id
    ORDER BY hav.host_id, hav.app_version_id
    FOR NO KEY UPDATE OF hav
)
UPDATE host_app_version SET
    consecutive_valid
        = CASE WHEN delta.valid_reset THEN 0 ELSE host_app_version.consecutive_valid END + delta.valid_added,
    quota_per_day = CASE
        WHEN delta.judged THEN trunc(least($27::double precision, greatest(
            1,
            coalesce(nullif(host_app_version.quota_per_day, 0), $26::int) * delta.quota_factor + delta.quota_added
        )))::int
        ELSE host_app_version.quota_per_day
    END,
    day = greatest(host_app_version.day, delta.day),
    sent_today = CASE
        WHEN delta.day > host_app_version.day THEN delta.sent
        ELSE host_app_version.sent_today + delta.sent
    END,
    stats_at = delta.stats_at,
    speed_n = greatest(0, host_app_version.speed_n * delta.weight + delta.speed_n),
    speed_sum = host_app_version.speed_sum * delta.weight + delta.speed_sum,
    speed_sum_sq = host_app_version.speed_sum_sq * delta.weight + delta.speed_sum_sq,
    tight_n = greatest(0, host_app_version.tight_n * delta.weight + delta.tight_n),
    tight_sum = host_app_version.tight_sum * delta.weight + delta.tight_sum,
    tight_sum_sq = host_app_version.tight_sum_sq * delta.weight + delta.tight_sum_sq,
    relaxed_n = greatest(0, host_app_version.relaxed_n * delta.weight + delta.relaxed_n),
    relaxed_sum = host_app_version.relaxed_sum * delta.weight + delta.relaxed_sum,
    relaxed_sum_sq = host_app_version.relaxed_sum_sq * delta.weight + delta.relaxed_sum_sq,
    log_n = host_app_version.log_n + delta.log_n,
    log_sum = host_app_version.log_sum + delta.log_sum,
    log_sum_sq = host_app_version.log_sum_sq + delta.log_sum_sq,
    n_valid = host_app_version.n_valid + delta.n_valid,
    n_error = host_app_version.n_error + delta.n_error,
    n_timeout = greatest(0, host_app_version.n_timeout + delta.n_timeout)
FROM locked AS delta
WHERE host_app_version.host_id = delta.host_id AND host_app_version.app_version_id = delta.app_version_id
RETURNING host_app_version.host_id, host_app_version.app_version_id;
