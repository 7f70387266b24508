-- name: failing_hosts
-- Purpose: hosts on which something went wrong lately, those with most failures first. What is in the history is left out.
-- Arguments: $1 since when, $2 how many failures are looked at, the last ones, $3 and $4 failures and host_id behind which to
--   go on, $5 limit.
-- Result: host_id, failures and their kinds (errors, invalid, timed_out), last_at; looked_at and since, the number of all
--   that was looked at and the first of it.
WITH failed AS MATERIALIZED (
    SELECT host_id, state, coalesce(reported_at, timeout_at) AS at
    FROM instance
    WHERE state IN ('failed', 'invalid', 'timed_out') AND coalesce(reported_at, timeout_at) >= $1
    ORDER BY coalesce(reported_at, timeout_at) DESC, instance_id DESC
    LIMIT $2
)
SELECT
    host_id, count(*) AS failures,
    count(*) FILTER (WHERE state = 'failed') AS errors,
    count(*) FILTER (WHERE state = 'invalid') AS invalid,
    count(*) FILTER (WHERE state = 'timed_out') AS timed_out,
    max(at) AS last_at,
    (SELECT count(*) FROM failed) AS looked_at,
    (SELECT min(at) FROM failed) AS since
FROM failed
GROUP BY host_id
HAVING (count(*), host_id) < ($3::bigint, $4::int)
ORDER BY count(*) DESC, host_id DESC
LIMIT $5;


-- name: hosts_looked_at
-- Purpose: how far a look at the newest hosts comes.
-- Arguments: $1 host_id before which it begins, $2 how many are looked at, less one.
-- Result: host_id of the last one, and of the one after it; less at the end of all hosts.
SELECT host_id FROM host WHERE host_id < $1 ORDER BY host_id DESC OFFSET $2 LIMIT 2;


-- name: hosts_newest
-- Purpose: hosts, newest first.
-- Arguments: $1 host_id before which to go on, $2 limit.
-- Result: host_id, descending.
SELECT host_id FROM host WHERE host_id < $1 ORDER BY host_id DESC LIMIT $2;


-- name: hosts_of_email
-- Purpose: the hosts of the volunteer with an e-mail address, newest first.
-- Arguments: $1 e-mail in lower case, $2 host_id before which to go on, $3 limit.
-- Result: host_id, descending.
SELECT host.host_id
FROM host
WHERE host.volunteer_id = (SELECT volunteer.volunteer_id FROM volunteer WHERE volunteer.email = $1)
    AND host.host_id + 0 < $2  -- not by the key: that would go through everybody's hosts
ORDER BY host.host_id + 0 DESC
LIMIT $3;


-- name: instances_of_host
-- Purpose: what a host was sent, the last one sent first. Those of the history are left out.
-- Arguments: $1 host_id, $2 volunteer_id of the host, $3 and $4 sent_at and instance_id behind which to go on, $5 and $6 those of
--   the last one that is looked at, $7 state or null for all, $8 limit.
-- Result: instances with the name of their app.
SELECT
    own.instance_id, own.job_id, own.batch_id, own.state, own.sent_at, own.due_at, own.reported_at, own.est_runtime_s,
    own.elapsed_s, own.tight, own.reason, app.name AS app_name
FROM (
    (
        SELECT *
        FROM instance
        WHERE instance.host_id = $1
            AND instance.state = 'in_progress'
            AND ($7::text IS NULL OR instance.state = $7)
            AND (instance.sent_at, instance.instance_id) < ($3, $4::bigint)
            AND (instance.sent_at, instance.instance_id) >= ($5, $6::bigint)
        ORDER BY instance.sent_at DESC, instance.instance_id DESC
        LIMIT $8
    )
    UNION ALL
    (
        SELECT *
        FROM instance
        WHERE instance.volunteer_id = $2
            AND instance.host_id = $1
            AND instance.state NOT IN ('unsent', 'in_progress', 'cancelled')
            AND ($7::text IS NULL OR instance.state = $7)
            AND (instance.sent_at, instance.instance_id) < ($3, $4::bigint)
            AND (instance.sent_at, instance.instance_id) >= ($5, $6::bigint)
        ORDER BY instance.sent_at DESC, instance.instance_id DESC
        LIMIT $8
    )
) AS own
JOIN batch ON batch.batch_id = own.batch_id
JOIN app ON app.app_id = batch.app_id
ORDER BY own.sent_at DESC, own.instance_id DESC
LIMIT $8;


-- name: listed_hosts
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


-- name: results_looked_at
-- Purpose: how far a look at a volunteer's last results comes.
-- Arguments: $1 volunteer_id, $2 and $3 sent_at and instance_id behind which it begins, $4 how many are looked at, less one.
-- Result: sent_at and instance_id of the last one, and of the one after it; less at the end of all.
SELECT sent_at, instance_id
FROM instance
WHERE volunteer_id = $1
    AND state NOT IN ('unsent', 'in_progress', 'cancelled')
    AND (sent_at, instance_id) < ($2, $3::bigint)
ORDER BY sent_at DESC, instance_id DESC
OFFSET $4
LIMIT 2;


-- name: silent_hosts
-- Purpose: hosts that have not called since an instant, newest first.
-- Arguments: $1 host_id before which to go on, $2 host_id of the last one that is looked at, $3 the instant, $4 limit.
-- Result: host_id, descending.
SELECT host_id
FROM host
WHERE host_id < $1 AND host_id >= $2 AND last_rpc_at < $3
ORDER BY host_id DESC
LIMIT $4;


-- name: slow_hosts
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
