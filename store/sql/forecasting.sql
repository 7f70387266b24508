-- name: by_key
-- Purpose: make the queries of this transaction find rows by key, on a connection that may also scan tables.
-- Arguments: none.
-- Result: none.
SET LOCAL enable_seqscan = off;
SET LOCAL enable_hashjoin = off;
SET LOCAL enable_mergejoin = off;


-- name: forecast_app
-- Purpose: return an app's versions and the sizes of the sampled tables.
-- Arguments: $1 app_id, $2 start of the relevant history.
-- Result: app_id, app_version_ids; in pages: hav_pages, host_pages, sent_pages (instances, and the months of the history).
--   No row if there is no such app.
SELECT
    app.app_id, version.ids AS app_version_ids,
    pg_relation_size('host_app_version') / current_setting('block_size')::bigint AS hav_pages,
    pg_relation_size('host') / current_setting('block_size')::bigint AS host_pages,
    (
        pg_relation_size('instance') + (
            SELECT coalesce(sum(pg_relation_size(to_regclass('finished_instance_' || replace(month, '-', '_')))), 0)
            FROM finished_month
            WHERE ends_at > $2::double precision AND to_regclass('finished_instance_' || replace(month, '-', '_')) IS NOT NULL
        )
    )::bigint / current_setting('block_size')::bigint AS sent_pages
FROM app
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(app_version_id ORDER BY app_version_id), '{}') AS ids
    FROM app_version
    WHERE app_version.app_id = app.app_id
) AS version
WHERE app.app_id = $1;


-- name: forecast_batch
-- Purpose: return an active batch's terms and the sizes of the sampled tables.
-- Arguments: $1 batch_id, $2 start of the relevant history.
-- Result: app_id, qos, created_at, delay_bound_s, held (by a limit or pause), app_version_ids; in pages: hav_pages, host_pages, sent_pages
--   (instances, and the months of the history). No row unless the batch is active.
SELECT
    batch.app_id, batch.qos, batch.created_at, class.delay_bound_s, version.ids AS app_version_ids,
    batch.hold IS NOT NULL OR EXISTS (
        SELECT FROM restriction
        WHERE (kind, name) IN (('batch', $1::bigint::text), ('app', batch.app_id::text), ('queue', batch.queue))
    ) AS held,
    pg_relation_size('host_app_version') / current_setting('block_size')::bigint AS hav_pages,
    pg_relation_size('host') / current_setting('block_size')::bigint AS host_pages,
    (
        pg_relation_size('instance') + (
            SELECT coalesce(sum(pg_relation_size(to_regclass('finished_instance_' || replace(month, '-', '_')))), 0)
            FROM finished_month
            WHERE ends_at > $2::double precision AND to_regclass('finished_instance_' || replace(month, '-', '_')) IS NOT NULL
        )
    )::bigint / current_setting('block_size')::bigint AS sent_pages
FROM batch
CROSS JOIN LATERAL (
    SELECT max(job_class.delay_bound_s) AS delay_bound_s
    FROM job_class
    WHERE job_class.batch_id = batch.batch_id
) AS class
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(app_version_id ORDER BY app_version_id), '{}') AS ids
    FROM app_version
    WHERE app_version.app_id = batch.app_id
) AS version
WHERE batch.batch_id = $1 AND batch.ended_at IS NULL;  -- true for an active batch, which is found by its id alone


-- name: forecast_few_havs
-- Purpose: return whether an app's versions have only few rows of host statistics. Each version by itself: for all at
--   once the plan may read the statistics of every host.
-- Arguments: $1 app_version_ids, $2 what counts as few rows.
-- Result: few.
SELECT NOT EXISTS (
    SELECT
    FROM unnest($1::int[]) AS wanted (app_version_id)
    CROSS JOIN LATERAL (
        SELECT host_app_version.app_version_id
        FROM host_app_version
        WHERE host_app_version.app_version_id = wanted.app_version_id
        LIMIT $2::bigint + 1
    ) AS hav
    OFFSET $2::bigint
) AS few;


-- name: forecast_havs
-- Purpose: return the statistics of some hosts with some app versions.
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


-- name: forecast_havs_few
-- Purpose: return all hosts' statistics with an app's versions, if they are few.
-- Arguments: $1 app_version_ids, $2 how many rows at most.
-- Result: the fields of domain/forecasting.py SAMPLED_HAV_FIELDS, none of them null.
SELECT
    hav.host_id, hav.app_version_id, hav.log_n, hav.log_sum, hav.log_sum_sq, hav.n_error, hav.n_timeout, hav.n_due,
    host.last_rpc_at, hav.found
FROM (
    SELECT
        host_id, app_version_id, log_n, log_sum, log_sum_sq, n_error, n_timeout, n_due, count(*) OVER () AS found
    FROM host_app_version
    WHERE app_version_id = ANY($1::int[])
    ORDER BY hashint4(host_id), host_id, app_version_id
    LIMIT $2::bigint
) AS hav
JOIN host ON host.host_id = hav.host_id


-- name: forecast_havs_sampled
-- Purpose: return hosts' statistics with an app's versions, from a sample of the pages.
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


-- name: forecast_hosts
-- Purpose: return the number of active hosts in a sample of pages, and their speed.
-- Arguments: $1 per cent of the pages, $2 the sample's seed, $3 since when an active host has called.
-- Result: one row: hosts, median_flop_per_s (NaN when there are none), processors (by the share of time they are
--   available).
SELECT
    count(*) AS hosts, coalesce(sum(ncpus * on_fraction * active_fraction), 0)::double precision AS processors,
    coalesce(percentile_cont(0.5) WITHIN GROUP (ORDER BY flop_per_s), 'NaN') AS median_flop_per_s
FROM host TABLESAMPLE SYSTEM ($1::real) REPEATABLE ($2::double precision)
WHERE last_rpc_at >= $3::double precision;


-- name: forecast_instances
-- Purpose: return the instances of a batch that were not cancelled. A batch's job ids are consecutive except for
--   those of batches submitted at the same time, so a range of the index contains them.
-- Arguments: $1 batch_id, $2 its first job_id, $3 its last one.
-- Result: the fields of domain/forecasting.py INSTANCE_FIELDS, none of them null.
SELECT
    job_id, coalesce(host_id, -1) AS host_id, coalesce(app_version_id, -1) AS app_version_id,
    CASE state
        WHEN 'unsent' THEN 0 WHEN 'in_progress' THEN 1 WHEN 'failed' THEN 3 WHEN 'timed_out' THEN 4
        WHEN 'invalid' THEN 5 WHEN 'aborted' THEN 6 ELSE 2
    END::smallint AS standing,
    CASE
        WHEN state = 'valid' THEN 1
        WHEN state IN ('failed', 'invalid') THEN 2
        WHEN state = 'timed_out' OR state = 'aborted' AND turnaround_sample IS NOT NULL THEN 3
        ELSE 0
    END::smallint AS counted,
    created_at, coalesce(sent_at, 'NaN') AS sent_at, coalesce(due_at, 'NaN') AS due_at,
    coalesce(timeout_at, 'NaN') AS timeout_at, coalesce(reported_at, 'NaN') AS reported_at
FROM instance
WHERE job_id BETWEEN $2::bigint AND $3::bigint AND batch_id = $1::bigint AND state <> 'cancelled'


-- name: forecast_jobs
-- Purpose: return the jobs of a batch that were not cancelled, for the completion estimator.
-- Arguments: $1 batch_id.
-- Result: the fields of domain/forecasting.py JOB_FIELDS, none of them null.
SELECT
    job.job_id, job_class.fpops_est_flop, job.state = 'open' AS is_open,
    least(job_class.max_instances, greatest(job_class.quorum, job.copies)) AS needed
FROM job
JOIN job_class ON job_class.job_class_id = job.job_class_id
WHERE job.batch_id = $1::bigint AND job.state <> 'cancelled'


-- name: forecast_places
-- Purpose: return the unsent work of active batches, in the order of sending.
-- Arguments: none.
-- Result: batch_id, app_id, qos, deadline_at, unpaid, unsent (0 while a limit or pause holds the batch), in the order of the queue.
SELECT
    batch.batch_id, batch.app_id, batch.qos, batch.deadline_at, batch.unpaid,
    CASE
        WHEN batch.hold IS NULL
            AND batch.batch_id NOT IN (SELECT name::bigint FROM restriction WHERE kind = 'batch')
            AND batch.app_id NOT IN (SELECT name::int FROM restriction WHERE kind = 'app')
            AND batch.queue NOT IN (SELECT name FROM restriction WHERE kind = 'queue')
        THEN (
            SELECT coalesce(sum(batch_count.unsent), 0) FROM batch_count WHERE batch_count.batch_id = batch.batch_id
        )
        ELSE 0
    END::bigint AS unsent
FROM batch
WHERE batch.state = 'active' AND batch.waiting
ORDER BY batch.order_tier, batch.order_key, batch.batch_id;


-- name: forecast_sent
-- Purpose: return a sample of the instances of an app's other batches by time of dispatch, in any state: from a
--   sample of pages, with the same fraction of current and history instances.
-- Arguments: $1 app_version_ids, $2 batch_id left out, $3 since when they were sent, $4 how many rows at most, $5 per cent
--   of the pages, $6 the sample's seed.
-- Result: the fields of domain/forecasting.py SENT_FIELDS, none of them null.
SELECT
    sent.host_id, sent.app_version_id,
    CASE sent.state
        WHEN 'in_progress' THEN 1 WHEN 'failed' THEN 3 WHEN 'timed_out' THEN 4
        WHEN 'invalid' THEN 5 WHEN 'aborted' THEN 6 ELSE 2
    END::smallint AS standing,
    sent.sent_at, coalesce(sent.reported_at, 'NaN') AS reported_at, job_class.fpops_est_flop, sent.found
FROM (
    SELECT *, count(*) OVER () AS found
    FROM (
        SELECT host_id, app_version_id, state, sent_at, reported_at, job_class_id, instance_id
        FROM instance TABLESAMPLE SYSTEM ($5::real) REPEATABLE ($6::double precision)
        WHERE app_version_id = ANY($1::int[]) AND batch_id <> $2::bigint AND sent_at >= $3::double precision
        UNION ALL
        SELECT host_id, app_version_id, state, sent_at, reported_at, job_class_id, instance_id
        FROM finished_instance TABLESAMPLE SYSTEM ($5::real) REPEATABLE ($6::double precision)
        WHERE app_version_id = ANY($1::int[]) AND batch_id <> $2::bigint AND sent_at >= $3::double precision
            AND batch_ended_at >= $3::double precision  -- nothing is sent after its batch has ended
    ) AS either
    ORDER BY hashint8(instance_id), instance_id
    LIMIT $4::bigint
) AS sent
JOIN job_class ON job_class.job_class_id = sent.job_class_id
