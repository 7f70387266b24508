-- Purpose: the statistics of all hosts with some app versions, to be ranked. In any order: a sort would take longer
--   than the ranking, which sorts anyway.
-- Arguments: $1 app_version_ids, $2 whether each is for a GPU (arrays), $3 since when an active host has called,
--   $4 since when an active row has had a result or a time-out, $5 since when a row had no failure that is forgiven.
-- Result: the fields of domain/populations.py HAV_FIELDS, none of them null.
SELECT
    hav.host_id, hav.app_version_id,
    CASE
        WHEN hav.consecutive_valid >= 3 AND hav.clean_since_at <= $5::double precision THEN 1073741824
        ELSE hav.consecutive_valid
    END AS consecutive_valid,
    host.last_rpc_at >= $3::double precision AND hav.stats_at >= $4::double precision AS active,
    hav.consecutive_valid = 0 AND hav.n_error + hav.n_timeout > 0 AS failed,
    hav.stats_at, hav.relaxed_n, hav.relaxed_sum, hav.tight_n, hav.tight_sum, hav.tight_sum_sq, hav.tight_missed_n,
    hav.log_n, hav.log_sum, hav.log_sum_sq,
    coalesce(hav.speed_sum / nullif(hav.speed_n, 0), 'NaN') / greatest(
        0.01, host.on_fraction * CASE WHEN version.gpu THEN host.gpu_active_fraction ELSE host.active_fraction END
    ) AS s_per_flop
FROM host_app_version AS hav
JOIN unnest($1::int[], $2::boolean[]) AS version (app_version_id, gpu) USING (app_version_id)
JOIN host USING (host_id)
