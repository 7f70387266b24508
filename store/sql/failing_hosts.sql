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
