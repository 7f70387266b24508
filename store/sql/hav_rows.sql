-- Purpose: the statistics of all hosts with some app versions, to be ranked. In the order of the table: a sort would take
--   longer than the ranking, which sorts anyway. What is asked of hosts is in ranked_hosts: joined here, it would be
--   worked out once for each of a host's rows.
-- Arguments: $1 app_version_ids, $2 since when a row had no failure that is forgiven.
-- Result: the fields of store/hav_tables.py ROW_FIELDS, none of them null.
SELECT
    host_id, app_version_id,
    CASE
        WHEN consecutive_valid >= 3 AND clean_since_at <= $2::double precision THEN 1073741824
        ELSE consecutive_valid
    END AS consecutive_valid,
    consecutive_valid = 0 AND (clean_since_at IS NOT NULL OR n_error + n_timeout > 0) AS failed,
    stats_at, relaxed_n, relaxed_sum, tight_n, tight_sum, tight_sum_sq, tight_missed_n, log_n, log_sum, log_sum_sq,
    coalesce(speed_sum / nullif(speed_n, 0), 'NaN') AS s_per_flop
FROM host_app_version
WHERE app_version_id = ANY($1::int[])
