-- Purpose: hosts as lists show them.
-- Arguments: $1 host_ids.
-- Result: hosts by id, with in_progress, and n_valid, n_error and n_timeout over their app versions.
SELECT
    host.*,
    (SELECT count(*) FROM instance WHERE instance.host_id = host.host_id AND instance.state = 'in_progress') AS in_progress,
    done.n_valid, done.n_error, done.n_timeout
FROM host
CROSS JOIN LATERAL (
    SELECT
        coalesce(sum(hav.n_valid), 0)::bigint AS n_valid,
        coalesce(sum(hav.n_error), 0)::bigint AS n_error,
        coalesce(sum(hav.n_timeout), 0)::bigint AS n_timeout
    FROM host_app_version AS hav
    WHERE hav.host_id = host.host_id
) AS done
WHERE host.host_id = ANY($1::int[])
ORDER BY host.host_id;
