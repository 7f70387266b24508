-- Purpose: add to the statistics of hosts' app versions, as domain/havs.py does in memory: sums are brought forward to
--   the later instant first, each losing half its weight in 14 days (1209600 s). Rows are changed in key order.
-- Arguments: $1 host_ids, $2 app_version_ids, $3 at, $4 judged (whether there were events), $5 valid_reset, $6 valid_added,
--   $7 quota_factor, $8 quota_added, $9 to $11 speed, $12 to $14 tight, $15 to $17 relaxed (n, sum, sum_sq),
--   $18 to $20 log (n, sum, sum_sq), $21 n_valid, $22 n_error, $23 n_timeout, $24 tight_missed_n, $25 day,
--   $26 sent, $27 quota_least, $28 quota_most (arrays, keys distinct), $29 quota_start.
-- Result: host_id and app_version_id of the rows that were there.
UPDATE host_app_version SET
    consecutive_valid
        = CASE WHEN delta.valid_reset THEN 0 ELSE host_app_version.consecutive_valid END + delta.valid_added,
    quota_per_day = CASE
        WHEN delta.judged THEN trunc(least(delta.quota_most, greatest(
            delta.quota_least,
            coalesce(nullif(host_app_version.quota_per_day, 0), $29::int) * delta.quota_factor + delta.quota_added
        )))::int
        ELSE host_app_version.quota_per_day
    END,
    day = greatest(host_app_version.day, delta.day),
    sent_today = CASE
        WHEN delta.day > host_app_version.day THEN delta.sent
        ELSE host_app_version.sent_today + delta.sent
    END,
    stats_at = greatest(host_app_version.stats_at, delta.at),
    clean_since_at = CASE
        WHEN delta.valid_reset OR (delta.n_valid > 0 AND host_app_version.clean_since_at IS NULL) THEN delta.at
        ELSE host_app_version.clean_since_at
    END,
    (
        speed_n, speed_sum, speed_sum_sq, tight_n, tight_sum, tight_sum_sq, tight_missed_n, relaxed_n, relaxed_sum,
        relaxed_sum_sq
    ) = (
        SELECT
            greatest(0, host_app_version.speed_n * weight + delta.speed_n),
            host_app_version.speed_sum * weight + delta.speed_sum,
            host_app_version.speed_sum_sq * weight + delta.speed_sum_sq,
            greatest(0, host_app_version.tight_n * weight + delta.tight_n),
            host_app_version.tight_sum * weight + delta.tight_sum,
            host_app_version.tight_sum_sq * weight + delta.tight_sum_sq,
            greatest(0, host_app_version.tight_missed_n * weight + delta.tight_missed_n),
            greatest(0, host_app_version.relaxed_n * weight + delta.relaxed_n),
            host_app_version.relaxed_sum * weight + delta.relaxed_sum,
            host_app_version.relaxed_sum_sq * weight + delta.relaxed_sum_sq
        FROM (
            -- 200 half-lives are nothing; more would underflow
            VALUES (
                power(2::double precision, -least(200, greatest(0, delta.at - host_app_version.stats_at) / 1209600))
            )
        ) AS decay (weight)
    ),
    log_n = host_app_version.log_n + delta.log_n,
    log_sum = host_app_version.log_sum + delta.log_sum,
    log_sum_sq = host_app_version.log_sum_sq + delta.log_sum_sq,
    n_valid = host_app_version.n_valid + delta.n_valid,
    n_error = host_app_version.n_error + delta.n_error,
    n_timeout = greatest(0, host_app_version.n_timeout + delta.n_timeout)
FROM (
    SELECT *
    FROM unnest(
        $1::int[], $2::int[], $3::double precision[], $4::boolean[], $5::boolean[], $6::int[], $7::double precision[],
        $8::int[], $9::double precision[], $10::double precision[], $11::double precision[], $12::double precision[],
        $13::double precision[], $14::double precision[], $15::double precision[], $16::double precision[],
        $17::double precision[], $18::bigint[], $19::double precision[], $20::double precision[], $21::bigint[],
        $22::bigint[], $23::bigint[], $24::double precision[], $25::int[], $26::int[], $27::int[],
        $28::int[]
    ) AS delta (
        host_id, app_version_id, at, judged, valid_reset, valid_added, quota_factor, quota_added, speed_n, speed_sum,
        speed_sum_sq, tight_n, tight_sum, tight_sum_sq, relaxed_n, relaxed_sum, relaxed_sum_sq, log_n, log_sum,
        log_sum_sq, n_valid, n_error, n_timeout, tight_missed_n, day, sent, quota_least, quota_most
    )
    ORDER BY delta.host_id, delta.app_version_id
) AS delta
WHERE host_app_version.host_id = delta.host_id
    AND host_app_version.app_version_id + 0 = delta.app_version_id  -- + 0: by the host, never by the version
RETURNING host_app_version.host_id, host_app_version.app_version_id;
