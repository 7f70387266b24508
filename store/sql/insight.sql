-- name: active_callers
-- Purpose: return the look-up keys of recently active hosts, and their number.
-- Arguments: $1 since when a host has called, $2 limit.
-- Result: callers, in an order independent of their properties, each with active, the number of hosts that called since.
SELECT
    host.host_id, host.host_cpid, host.last_rpc_at, host.rpc_interval_s, volunteer.authenticator_hash,
    (count(*) OVER ())::int AS active
FROM host
JOIN volunteer USING (volunteer_id)
WHERE host.last_rpc_at >= $1::double precision
ORDER BY hashint8(host.host_id), host.host_id
LIMIT $2::int;


-- name: active_hosts
-- Purpose: return recently active hosts: their equipment (sql/equipment_of_hosts.sql) and their request rate. In any
--   order.
-- Arguments: $1 since when a host has called, $2 the present instant, $3 a sample: one host in how many.
-- Result: host_id, equipment, calls_per_hour, none of them null.
SELECT
    host_id, hashtextextended(platforms::text || jsonb_path_query_array(coprocessors, '$[*].type')::text, 0) AS equipment,
    CASE
        WHEN rpc_interval_s IS NULL THEN 0
        ELSE 3600 / greatest(rpc_interval_s, ($2::double precision - last_rpc_at) / 3, 1)
    END AS calls_per_hour
FROM host
WHERE last_rpc_at >= $1::double precision AND hashint4(host_id) % $3::int = 0


-- name: batches_in_need
-- Purpose: return active batches that have missed their deadline, may miss it by their latest forecast with evidence, or
--   whose jobs fail. Earliest deadline first.
-- Arguments: $1 now, $2 and $3 number and fraction of ended jobs that must have failed, $4 limit.
-- Result: batch_id; found, the number of all such batches.
SELECT batch.batch_id, count(*) OVER ()::int AS found
FROM batch
LEFT JOIN latest_forecast AS latest ON latest.batch_id = batch.batch_id AND batch.deadline_at IS NOT NULL
CROSS JOIN LATERAL (
    SELECT coalesce(sum(batch_count.jobs_validated), 0) AS valid, coalesce(sum(batch_count.jobs_failed), 0) AS failed
    FROM batch_count
    WHERE batch_count.batch_id = batch.batch_id
) AS over
WHERE batch.state = 'active'
    AND (
        batch.deadline_at <= $1
        OR (latest.has_evidence AND latest.q90_at > batch.deadline_at)
        OR (over.failed >= $2::bigint AND over.failed >= $3::double precision * (over.valid + over.failed))
    )
ORDER BY batch.deadline_at, batch.batch_id
LIMIT $4;


-- name: apps_without_version
-- Purpose: return the apps that are deprecated or have no version that is offered, and have work that may wait.
-- Arguments: none.
-- Result: app_id. It reads the active batches only if there are such apps.
SELECT app.app_id
FROM app
WHERE (app.deprecated OR NOT EXISTS (
    SELECT FROM app_version WHERE app_version.app_id = app.app_id AND NOT app_version.deprecated
))
    AND EXISTS (SELECT FROM batch WHERE batch.state = 'active' AND batch.waiting AND batch.app_id = app.app_id)
ORDER BY app.app_id;


-- name: batches_without_version
-- Purpose: return active batches with unsent instances of apps without a version.
-- Arguments: $1 app_ids, $2 number of batches to read.
-- Result: rows of batch_with_counts, by batch_id, with found: the number of all such batches. Counts are read only of
--   the returned ones.
SELECT batch_with_counts.*, lost.found
FROM (
    SELECT batch.batch_id, count(*) OVER ()::int AS found
    FROM batch
    WHERE batch.state = 'active'
        AND batch.waiting
        AND batch.app_id = ANY ($1::int[])
        AND (
            EXISTS (
                SELECT FROM instance
                WHERE instance.batch_id = batch.batch_id AND instance.state = 'unsent' AND NOT instance.urgent
            )
            OR EXISTS (
                SELECT FROM instance
                WHERE instance.batch_id = batch.batch_id AND instance.state = 'unsent' AND instance.urgent
            )
        )
    ORDER BY batch.batch_id
    LIMIT $2
) AS lost
JOIN batch_with_counts ON batch_with_counts.batch_id = lost.batch_id
ORDER BY batch_with_counts.batch_id;


-- name: caller_of_host
-- Purpose: return the look-up key of a host's next request.
-- Arguments: $1 host_id.
-- Result: a caller; no row when there is no such host.
SELECT host.host_id, host.host_cpid, host.last_rpc_at, host.rpc_interval_s, volunteer.authenticator_hash
FROM host
JOIN volunteer USING (volunteer_id)
WHERE host.host_id = $1::bigint;


-- name: count_active_hosts
-- Purpose: count the hosts with a recent request.
-- Arguments: $1 instant since which a request counts.
-- Result: hosts. It reads every host; the caller asks a few times per hour.
SELECT count(*) AS hosts FROM host WHERE last_rpc_at >= $1;


-- name: count_web_sessions
-- Purpose: count the signed-in users.
-- Arguments: $1 now.
-- Result: one row: sessions of the project's people, and of volunteers.
SELECT count(person_id) AS people, count(volunteer_id) AS volunteers
FROM web_session
WHERE expires_at > $1;


-- name: database_figures
-- Purpose: return the size of the database, the age of its oldest transaction, and its client sessions by state.
-- Arguments: $1 now.
-- Result: one row; states and sessions are arrays of the same length, the age is null while no transaction is open.
SELECT
    pg_database_size(current_database()) AS size_bytes,
    (
        SELECT greatest($1 - extract(epoch FROM min(activity.xact_start))::double precision, 0)
        FROM pg_stat_activity AS activity
        WHERE activity.datname = current_database() AND activity.backend_type = 'client backend'
            AND activity.pid <> pg_backend_pid()
    ) AS oldest_s,
    by_state.states,
    by_state.sessions
FROM (
    SELECT coalesce(array_agg(state ORDER BY state), '{}') AS states, coalesce(array_agg(n ORDER BY state), '{}') AS sessions
    FROM (
        SELECT coalesce(state, 'unknown') AS state, count(*) AS n
        FROM pg_stat_activity
        WHERE datname = current_database() AND backend_type = 'client backend'
        GROUP BY 1
    ) AS counted
) AS by_state;


-- name: delete_samples
-- Purpose: delete samples that are old, or later than now because a clock was wrong.
-- Arguments: $1 step_s, $2 before which, $3 after which, $4 limit of rows.
-- Result: none.
DELETE FROM sample
WHERE step_s = $1 AND at IN (
    SELECT at FROM sample WHERE step_s = $1 AND (at < $2 OR at > $3) LIMIT $4
);


-- name: equipment_of_hosts
-- Purpose: return the equipment of recently active hosts that decides which app versions they could run.
-- Arguments: $1 since when a host has called.
-- Result: equipment (sql/active_hosts.sql), platforms, coprocessors (JSON, the types of the present ones).
SELECT
    hashtextextended(platforms::text || types::text, 0) AS equipment, platforms, types AS coprocessors
FROM (
    SELECT DISTINCT platforms, jsonb_path_query_array(coprocessors, '$[*].type') AS types
    FROM host
    WHERE last_rpc_at >= $1::double precision
) AS found
ORDER BY platforms, types;


-- name: failing_versions
-- Purpose: return app versions with many recent errors and invalid results, with the hosts that used them recently:
--   as in use_of_versions, those with a result or timeout. Others only inherited statistics, or lost their jobs.
-- Arguments: $1 since when, $2 number of latest failures to read, $3 minimum number of failures of a version.
-- Result: by app_version_id: its app, platform, version_num, plan_class and deprecated; failures, and batch_failures,
--   those of batch_id, the batch with the most; hosts with events since then, and failing, those whose latest event is
--   a failure.
WITH failed AS MATERIALIZED (
    SELECT app_version_id, batch_id, state
    FROM instance
    WHERE state IN ('failed', 'invalid', 'timed_out') AND coalesce(reported_at, timeout_at) >= $1
    ORDER BY coalesce(reported_at, timeout_at) DESC, instance_id DESC
    LIMIT $2
)
SELECT
    version.app_version_id, app.name AS app, version.platform, version.version_num, version.plan_class,
    version.deprecated, often.failures, often.batch_id, often.batch_failures, recent.hosts, recent.failing
FROM (
    SELECT
        app_version_id, sum(failures)::int AS failures, max(failures) AS batch_failures,
        (array_agg(batch_id ORDER BY failures DESC, batch_id))[1] AS batch_id
    FROM (
        SELECT app_version_id, batch_id, count(*)::int AS failures
        FROM failed
        WHERE state <> 'timed_out'
        GROUP BY app_version_id, batch_id
    ) AS of_batch
    GROUP BY app_version_id
    HAVING sum(failures) >= $3::int
) AS often
JOIN app_version AS version ON version.app_version_id = often.app_version_id
JOIN app ON app.app_id = version.app_id
CROSS JOIN LATERAL (
    SELECT
        count(*)::int AS hosts,
        (count(*) FILTER (WHERE hav.consecutive_valid = 0 AND hav.clean_since_at >= $1))::int AS failing
    FROM host_app_version AS hav
    WHERE hav.app_version_id = often.app_version_id AND greatest(hav.stats_at, hav.clean_since_at) >= $1
        AND hav.n_valid + hav.n_error + hav.n_timeout > 0
) AS recent
ORDER BY version.app_version_id;


-- name: hav_standings
-- Purpose: return the statistics of recently active hosts with some app versions, and their request rate. In any
--   order.
-- Arguments: $1 app_version_ids with commas between them, $2 since when a host has called, $3 the present instant,
--   $4 a sample: one host in how many.
-- Result: the fields of domain/insight.py STANDING_FIELDS, none of them null.
SELECT
    hav.host_id, host.volunteer_id, hav.app_version_id, hav.consecutive_valid,
    hav.consecutive_valid = 0 AND (hav.clean_since_at IS NOT NULL OR hav.n_error + hav.n_timeout > 0) AS failed,
    hav.stats_at, hav.relaxed_n, hav.relaxed_sum, hav.tight_n, hav.tight_missed_n,
    coalesce(hav.clean_since_at, 'NaN') AS clean_since_at,
    CASE
        WHEN host.rpc_interval_s IS NULL THEN 0
        ELSE 3600 / greatest(host.rpc_interval_s, ($3::double precision - host.last_rpc_at) / 3, 1)
    END AS calls_per_hour
FROM host_app_version AS hav
JOIN host USING (host_id)
WHERE hav.app_version_id = ANY(string_to_array($1::text, ',')::int[]) AND host.last_rpc_at >= $2::double precision
    AND hashint4(hav.host_id) % $4::int = 0 AND hashint4(host.host_id) % $4::int = 0


-- name: host_contacts
-- Purpose: count the recently active hosts, and those of them that have fallen silent.
-- Arguments: $1 now, $2 since when a host has called, $3 minimum silence in s, $4 the silence in the host's own intervals
--   between requests.
-- Result: one row: hosts, silent; last_at, of the latest request (0: none); usual_per_s, the requests until then, fewer of
--   hosts that were silent already.
WITH called AS (
    SELECT last_rpc_at, rpc_interval_s, max(last_rpc_at) OVER () AS last_at
    FROM host
    WHERE last_rpc_at >= $2::double precision
)
SELECT
    count(*)::int AS hosts,
    (count(*) FILTER (WHERE $1 - last_rpc_at > greatest($3::double precision, $4::double precision * rpc_interval_s)))::int AS silent,
    coalesce(max(last_at), 0) AS last_at,
    coalesce(sum(1 / greatest(rpc_interval_s, (last_at - last_rpc_at) / 3, 1)) FILTER (WHERE rpc_interval_s > 0), 0) AS usual_per_s
FROM called;


-- name: hosts_that_fail
-- Purpose: return hosts at least half of whose recent results failed, highest failure rate first. Banned hosts are left out.
-- Arguments: $1 since when, $2 number of latest failures to read, and of a host's results, $3 minimum number of results,
--   $4 fraction of them that must have failed, both without $5 app_version_ids, $6 limit.
-- Result: host_id, domain_name; failures, results: of the instances sent to the host since then; the kinds of failures
--   (errors, invalid, timed_out); of_versions: the failures of the versions in $5; judged: the results of others; last_at,
--   of the last failure; since ($1). Only valid results and failures count, not those that wait for validation, came too
--   late or were aborted.
WITH failed AS MATERIALIZED (
    SELECT host_id, app_version_id
    FROM instance
    WHERE state IN ('failed', 'invalid', 'timed_out') AND coalesce(reported_at, timeout_at) >= $1
    ORDER BY coalesce(reported_at, timeout_at) DESC, instance_id DESC
    LIMIT $2
)
SELECT often.host_id, host.domain_name, recent.*, $1::double precision AS since
FROM (
    SELECT host_id
    FROM failed
    WHERE app_version_id <> ALL($5::int[])
    GROUP BY host_id
    HAVING count(*) >= $4::double precision * $3::int
) AS often
JOIN host ON host.host_id = often.host_id
CROSS JOIN LATERAL (
    SELECT
        count(*)::int AS results,
        (count(*) FILTER (WHERE decided.state <> 'valid'))::int AS failures,
        (count(*) FILTER (WHERE decided.state = 'failed'))::int AS errors,
        (count(*) FILTER (WHERE decided.state = 'invalid'))::int AS invalid,
        (count(*) FILTER (WHERE decided.state = 'timed_out'))::int AS timed_out,
        (count(*) FILTER (WHERE decided.state <> 'valid' AND decided.app_version_id = ANY($5::int[])))::int AS of_versions,
        count(*) FILTER (WHERE decided.app_version_id <> ALL($5::int[])) AS judged,
        max(coalesce(decided.reported_at, decided.timeout_at)) FILTER (WHERE decided.state <> 'valid') AS last_at
    FROM (
        SELECT instance.state, instance.reported_at, instance.timeout_at, instance.app_version_id
        FROM instance
        WHERE instance.volunteer_id = host.volunteer_id
            AND instance.sent_at >= $1
            AND instance.state IN ('valid', 'failed', 'invalid', 'timed_out')
            AND instance.host_id = host.host_id
        ORDER BY instance.sent_at DESC
        LIMIT $2
    ) AS decided
) AS recent
WHERE recent.judged >= $3::int
    AND recent.failures - recent.of_versions >= $4::double precision * recent.judged
    AND NOT EXISTS (
        SELECT
        FROM restriction
        WHERE restriction.max_jobs = 0
            AND (restriction.kind, restriction.name) IN (
                ('host', host.host_id::text), ('volunteer', host.volunteer_id::text)
            )
    )
ORDER BY
    (recent.failures - recent.of_versions)::double precision / recent.judged DESC,
    recent.failures - recent.of_versions DESC, often.host_id
LIMIT $6;


-- name: instances_on_hosts
-- Purpose: return the instances in progress on some hosts.
-- Arguments: $1 host_ids, $2 how many at most.
-- Result: host_id, batch_id, app_version_id, sent_at, due_at; by host and in the order of their dispatch.
SELECT host_id, batch_id, app_version_id, sent_at, due_at
FROM instance
WHERE host_id = ANY($1::int[]) AND state = 'in_progress'
ORDER BY host_id, sent_at, instance_id
LIMIT $2::int;


-- name: last_sample
-- Purpose: return the instant of the latest sample of a step.
-- Arguments: $1 step_s, $2 until when.
-- Result: at; no row without samples.
SELECT at FROM sample WHERE step_s = $1 AND at <= $2 ORDER BY at DESC LIMIT 1;


-- name: list_samples
-- Purpose: return the samples of a period.
-- Arguments: $1 step_s, $2 since when, $3 until when, this not included, $4 limit of rows.
-- Result: at, figures (JSON), in order.
SELECT at, figures FROM sample WHERE step_s = $1 AND at >= $2 AND at < $3 ORDER BY at LIMIT $4;


-- name: recent_callers
-- Purpose: return the look-up keys of the most recently active hosts.
-- Arguments: $1 limit.
-- Result: callers, the latest first.
SELECT host.host_id, host.host_cpid, host.last_rpc_at, host.rpc_interval_s, volunteer.authenticator_hash
FROM host
JOIN volunteer USING (volunteer_id)
ORDER BY host.last_rpc_at DESC, host.host_id DESC
LIMIT $1;


-- name: sampled_hosts
-- Purpose: return a sample, by id, of recently active hosts, and their number.
-- Arguments: $1 since when a host has called, $2 how many hosts at most.
-- Result: hosts by id, each with active, the number of hosts that called since.
SELECT host.*, sampled.active
FROM (
    SELECT host_id, count(*) OVER () AS active
    FROM host
    WHERE last_rpc_at >= $1::double precision
    ORDER BY md5(host_id::text) COLLATE "C", host_id
    LIMIT $2::int
) AS sampled
JOIN host ON host.host_id = sampled.host_id
ORDER BY host.host_id;


-- name: short_batches
-- Purpose: return active batches that the recently active hosts cannot finish, because a volunteer or a host gets at
--   most one instance per job: fewer hosts than results that must agree, or all have already had a waiting job.
-- Arguments: $1 batch_ids, $2 instant since which a call counts, $3 hosts of an app that are read (an app with so many is
--   left out), $4 urgent instances of a batch that are read.
-- Result: by batch_id: batch_id, one_per ('volunteer' or 'host'), agreeing, jobs, hosts, volunteers.
WITH wanted AS MATERIALIZED (
    SELECT
        batch.batch_id, batch.app_id, app.adaptive_copies, app.one_per_volunteer, app.one_per_host, class.agreeing
    FROM batch
    JOIN app ON app.app_id = batch.app_id
    CROSS JOIN LATERAL (
        SELECT greatest(max(job_class.quorum), app.adaptive_copies) AS agreeing
        FROM job_class
        WHERE job_class.batch_id = batch.batch_id
    ) AS class
    WHERE batch.batch_id = ANY($1::bigint[])
        AND batch.state = 'active'
        AND (
            class.agreeing > 1
            OR EXISTS (  -- the others cannot be short: no host is read for them
                SELECT
                FROM instance
                WHERE instance.batch_id = batch.batch_id AND instance.state = 'unsent' AND instance.urgent
            )
        )
),
callers AS MATERIALIZED (
    SELECT of_app.app_id, host.host_id, host.volunteer_id
    FROM (SELECT DISTINCT app_id FROM wanted) AS of_app
    CROSS JOIN LATERAL (
        SELECT host.host_id, host.volunteer_id
        FROM host
        WHERE host.last_rpc_at >= $2
            AND host.platforms && ARRAY(
                SELECT version.platform
                FROM app_version AS version
                WHERE version.app_id = of_app.app_id AND NOT version.deprecated
            )
        LIMIT $3
    ) AS host
),
counted AS (
    SELECT app_id, count(*)::int AS hosts, count(DISTINCT volunteer_id)::int AS volunteers
    FROM callers
    GROUP BY app_id
    HAVING count(*) < $3
),
judged AS (
    SELECT
        wanted.batch_id, counted.hosts, counted.volunteers, wanted.agreeing,
        CASE
            WHEN wanted.one_per_volunteer = 'always' OR (wanted.one_per_volunteer = 'quorum' AND wanted.agreeing > 1)
            THEN 'volunteer'
            WHEN wanted.one_per_host THEN 'host'
        END AS one_per,
        (
            SELECT count(DISTINCT waiting.job_id)::int
            FROM (
                SELECT instance.job_id
                FROM instance
                WHERE instance.batch_id = wanted.batch_id AND instance.state = 'unsent' AND instance.urgent
                ORDER BY instance.retries DESC, instance.instance_id
                LIMIT $4
            ) AS waiting
            JOIN job ON job.job_id = waiting.job_id
            JOIN job_class ON job_class.job_class_id = job.job_class_id
            CROSS JOIN LATERAL (
                SELECT
                    count(*) FILTER (
                        WHERE sibling.state IN ('in_progress', 'reported', 'inconclusive', 'valid')
                    ) AS of_use,
                    array_agg(sibling.host_id) FILTER (WHERE sibling.host_id IS NOT NULL) AS hosts,
                    array_agg(sibling.volunteer_id) FILTER (WHERE sibling.host_id IS NOT NULL) AS volunteers
                FROM instance AS sibling
                WHERE sibling.job_id = waiting.job_id
            ) AS siblings
            CROSS JOIN LATERAL (
                SELECT greatest(job_class.quorum, wanted.adaptive_copies, job.copies) AS agreeing
            ) AS of_job
            WHERE siblings.of_use < of_job.agreeing
                AND NOT EXISTS (
                    SELECT
                    FROM callers
                    WHERE callers.app_id = wanted.app_id
                        AND CASE
                            WHEN wanted.one_per_volunteer = 'always'
                                OR (wanted.one_per_volunteer = 'quorum' AND of_job.agreeing > 1)
                            THEN callers.volunteer_id <> ALL(coalesce(siblings.volunteers, '{}'))
                            WHEN wanted.one_per_host
                            THEN callers.host_id <> ALL(coalesce(siblings.hosts, '{}'))
                            ELSE true
                        END
                )
        ) AS jobs
    FROM wanted
    JOIN counted ON counted.app_id = wanted.app_id
)
SELECT batch_id, one_per, agreeing, jobs, hosts, volunteers
FROM judged
WHERE one_per IS NOT NULL AND (jobs > 0 OR agreeing > CASE one_per WHEN 'volunteer' THEN volunteers ELSE hosts END)
ORDER BY batch_id;


-- name: sizes_of_batches
-- Purpose: return the size and the requirements of batches' jobs.
-- Arguments: $1 batch_ids.
-- Result: batch_id, flop of an instance on average, and the most its classes ask for: memory_bytes, ncpus, quorum.
SELECT
    batch.batch_id, batch.batch_flop / coalesce(batch.quorum_total, batch.jobs_total * class.quorum) AS flop,
    class.memory_bytes, class.ncpus, class.quorum
FROM batch
CROSS JOIN LATERAL (
    SELECT max(memory_bytes) AS memory_bytes, max(ncpus) AS ncpus, max(quorum) AS quorum
    FROM job_class
    WHERE job_class.batch_id = batch.batch_id
) AS class
WHERE batch.batch_id = ANY($1::bigint[])
ORDER BY batch.batch_id;


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


-- name: waiting_batches
-- Purpose: return the first active, unblocked and unpaused batches with unsent instances, with their number of unsent retries.
-- Arguments: $1 limit.
-- Result: rows of batch_with_counts by (order_tier, order_key, batch_id), with retries_unsent, the least delay_bound_s, most_quorum and most_retries of its jobs.
SELECT
    batch_with_counts.*, retry.retries_unsent, class.delay_bound_s, class.most_quorum, retry.most_retries
FROM (
    SELECT batch_id
    FROM batch
    WHERE state = 'active'
        AND waiting
        AND hold IS NULL
        AND batch_id NOT IN (SELECT name::bigint FROM restriction WHERE kind = 'batch')
        AND app_id NOT IN (SELECT name::int FROM restriction WHERE kind = 'app')
        AND queue NOT IN (SELECT name FROM restriction WHERE kind = 'queue')
        AND (SELECT sum(batch_count.unsent) FROM batch_count WHERE batch_count.batch_id = batch.batch_id) > 0
    ORDER BY order_tier, order_key, batch_id
    LIMIT $1
) AS first
JOIN batch_with_counts ON batch_with_counts.batch_id = first.batch_id
CROSS JOIN LATERAL (
    SELECT count(*) AS retries_unsent, coalesce(max(instance.retries), 0) AS most_retries
    FROM instance
    WHERE instance.batch_id = first.batch_id AND instance.state = 'unsent' AND instance.urgent AND instance.retries > 0
) AS retry
CROSS JOIN LATERAL (
    SELECT min(job_class.delay_bound_s) AS delay_bound_s, max(job_class.quorum) AS most_quorum
    FROM job_class
    WHERE job_class.batch_id = first.batch_id
) AS class
ORDER BY batch_with_counts.order_tier, batch_with_counts.order_key, batch_with_counts.batch_id;


-- name: write_sample
-- Purpose: store a sample, instead of an earlier one of the same step.
-- Arguments: $1 step_s, $2 at, $3 figures (JSON).
-- Result: none.
INSERT INTO sample (step_s, at, figures) VALUES ($1, $2, $3::jsonb)
ON CONFLICT (step_s, at) DO UPDATE SET figures = excluded.figures;
