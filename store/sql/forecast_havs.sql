-- Purpose: what some hosts have done with some app versions.
-- Arguments: $1 host_ids, $2 app_version_ids (arrays, pairs distinct).
-- Result: the fields of domain/forecasting.py FORECAST_HAV_FIELDS for every pair, none of them null.
SELECT
    asked.host_id, asked.app_version_id, coalesce(hav.log_n, 0) AS log_n, coalesce(hav.log_sum, 0) AS log_sum,
    coalesce(hav.log_sum_sq, 0) AS log_sum_sq, coalesce(hav.n_error, 0) AS n_error,
    coalesce(hav.n_timeout, 0) AS n_timeout, coalesce(hav.n_due, 0) AS n_due,
    coalesce(host.last_rpc_at, 'NaN') AS last_rpc_at
FROM unnest($1::int[], $2::int[]) AS asked (host_id, app_version_id)
LEFT JOIN host_app_version AS hav
    ON hav.host_id = asked.host_id AND hav.app_version_id + 0 = asked.app_version_id  -- + 0: by the host
LEFT JOIN host ON host.host_id = asked.host_id
