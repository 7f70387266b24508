-- name: batches_in_need
-- Purpose: return active batches that have missed their deadline, may miss it by their latest forecast with evidence, or
--   whose jobs fail. Earliest deadline first.
-- Arguments: $1 now, $2 and $3 number and fraction of ended jobs that must have failed, $4 limit.
-- Result: batch_id; found, the number of all such batches.
SELECT batch.batch_id, count(*) OVER ()::int AS found
FROM batch
LEFT JOIN batch_forecast ON batch_forecast.batch_id = batch.batch_id AND batch.deadline_at IS NOT NULL
LEFT JOIN forecast ON forecast.batch_id = batch_forecast.batch_id AND forecast.made_at = batch_forecast.made_at
CROSS JOIN LATERAL (
    SELECT coalesce(sum(batch_count.jobs_validated), 0) AS valid, coalesce(sum(batch_count.jobs_failed), 0) AS failed
    FROM batch_count
    WHERE batch_count.batch_id = batch.batch_id
) AS over
WHERE batch.state = 'active'
    AND (
        batch.deadline_at <= $1
        OR (forecast.q90_at > batch.deadline_at AND forecast.method NOT IN ('fallback', 'a_priori'))
        OR (over.failed >= $2::bigint AND over.failed >= $3::double precision * (over.valid + over.failed))
    )
ORDER BY batch.deadline_at, batch.batch_id
LIMIT $4;


-- name: failing_versions
-- Purpose: return app versions with many recent errors and invalid results, with the hosts that used them recently.
-- Arguments: $1 since when, $2 number of latest failures to read, $3 minimum number of failures of a version.
-- Result: by app_version_id: its app, platform, version_num and plan_class; failures; hosts with events since then, and
--   failing, those whose latest event is a failure.
WITH failed AS MATERIALIZED (
    SELECT app_version_id, state
    FROM instance
    WHERE state IN ('failed', 'invalid', 'timed_out') AND coalesce(reported_at, timeout_at) >= $1
    ORDER BY coalesce(reported_at, timeout_at) DESC, instance_id DESC
    LIMIT $2
)
SELECT
    version.app_version_id, app.name AS app, version.platform, version.version_num, version.plan_class, often.failures,
    recent.hosts, recent.failing
FROM (
    SELECT app_version_id, count(*)::int AS failures
    FROM failed
    WHERE state <> 'timed_out'
    GROUP BY app_version_id
    HAVING count(*) >= $3::int
) AS often
JOIN app_version AS version ON version.app_version_id = often.app_version_id AND NOT version.deprecated
JOIN app ON app.app_id = version.app_id
CROSS JOIN LATERAL (
    SELECT
        count(*)::int AS hosts,
        (count(*) FILTER (WHERE hav.consecutive_valid = 0 AND hav.clean_since_at >= $1))::int AS failing
    FROM host_app_version AS hav
    WHERE hav.app_version_id = often.app_version_id AND greatest(hav.stats_at, hav.clean_since_at) >= $1
) AS recent
ORDER BY version.app_version_id;


-- name: host_contacts
-- Purpose: count the recently active hosts, and those of them that have fallen silent.
-- Arguments: $1 now, $2 since when a host has called, $3 minimum silence in s, $4 the silence in the host's own intervals
--   between requests.
-- Result: one row: hosts, silent.
SELECT
    count(*)::int AS hosts,
    (count(*) FILTER (WHERE $1 - last_rpc_at > greatest($3::double precision, $4::double precision * rpc_interval_s)))::int AS silent
FROM host
WHERE last_rpc_at >= $2::double precision;


-- name: upkeep
-- Purpose: return the time of the last recorded backup and the state of validation.
-- Arguments: $1 number of jobs to settle that are read, $2 attempts from which a comparison counts as failing.
-- Result: one row: backup_at (null: none), installed_at (the first migration), waiting, failing (jobs to settle).
SELECT
    (SELECT done_at FROM duty WHERE name = 'backup') AS backup_at,
    (SELECT min(applied_at) FROM schema_version) AS installed_at,
    count(*)::int AS waiting,
    (count(*) FILTER (WHERE todo.attempts >= $2::int))::int AS failing
FROM (SELECT attempts FROM job_todo ORDER BY serial LIMIT $1) AS todo;
