-- Purpose: what hosts have done with an app's versions, from a sample of the pages.
-- Arguments: $1 app_version_ids, $2 how many rows at most, $3 per cent of the pages, $4 the sample's seed.
-- Result: the fields of domain/forecasting.py SAMPLED_HAV_FIELDS, none of them null.
SELECT
    hav.host_id, hav.app_version_id, hav.log_n, hav.log_sum, hav.log_sum_sq, hav.n_error, hav.n_timeout, hav.n_due,
    host.last_rpc_at, hav.found
FROM (
    SELECT
        host_id, app_version_id, log_n, log_sum, log_sum_sq, n_error, n_timeout, n_due, count(*) OVER () AS found
    FROM host_app_version TABLESAMPLE SYSTEM ($3::real) REPEATABLE ($4::double precision)
    WHERE app_version_id = ANY($1::int[])
    ORDER BY hashint4(host_id), host_id, app_version_id
    LIMIT $2::bigint
) AS hav
JOIN host ON host.host_id = hav.host_id
