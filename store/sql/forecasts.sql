-- name: app_forecasts
-- Purpose: return the accuracy of each app's forecasts.
-- Arguments: none.
-- Result: rows of app_forecast by app_id.
SELECT * FROM app_forecast ORDER BY app_id;


-- name: by_key
-- Purpose: make the queries of this transaction find rows by key, on a connection that may also scan tables.
-- Arguments: none.
-- Result: none.
SET LOCAL enable_seqscan = off;
SET LOCAL enable_hashjoin = off;
SET LOCAL enable_mergejoin = off;


-- name: checkpoint_forecasts
-- Purpose: return the scored forecasts of some batches: the model's own at their checkpoints.
-- Arguments: $1 batch_ids (array).
-- Result: batch_id, checkpoint_fraction, made_at, q10_at, q50_at, q90_at, spread; by batch_id and checkpoint_fraction.
SELECT batch_id, checkpoint_fraction, made_at, q10_at, q50_at, q90_at, spread
FROM forecast
WHERE batch_id = ANY($1::bigint[]) AND checkpoint_fraction IS NOT NULL AND method NOT IN ('complete', 'fallback')
ORDER BY batch_id, checkpoint_fraction;


-- name: drop_forecast_terms
-- Purpose: delete the input of an ended batch's forecasts.
-- Arguments: $1 batch_id.
-- Result: none.
UPDATE forecast SET terms = NULL, holds = '[]' WHERE batch_id = $1;


-- name: ended_forecasts
-- Purpose: return batches that ended since their last forecast.
-- Arguments: $1 limit.
-- Result: rows of batch_with_counts by batch_id, with delay_bound_s.
SELECT batch_with_counts.*, class.delay_bound_s
FROM (
    SELECT batch_forecast.batch_id
    FROM batch_forecast
    JOIN batch ON batch.batch_id = batch_forecast.batch_id
    WHERE batch.ended_at IS NOT NULL
    ORDER BY batch_forecast.batch_id
    LIMIT $1
) AS ended
JOIN batch_with_counts ON batch_with_counts.batch_id = ended.batch_id
CROSS JOIN LATERAL (
    SELECT max(job_class.delay_bound_s) AS delay_bound_s
    FROM job_class
    WHERE job_class.batch_id = ended.batch_id
) AS class
ORDER BY batch_with_counts.batch_id;


-- name: forecast_ages
-- Purpose: return the active batches due for a forecast if any of their jobs ended since the last one, if they have
--   not ended when expected, if all their instances were sent since, or if failed jobs are retried, oldest forecast
--   first. A batch that moves waits until its move counts, at most timer_s.
-- Arguments: $1 now, $2 pause_s, $3 timer_s, $4 the fraction of the remaining time, or of the batch's jobs, for which
--   validations are collected, $5 the number of ended jobs up to which each doubling is due at once, $6 the seconds after
--   a move in which dispatches are counted.
-- Result: batch_id, made_at (null when never), completion_at, jobs_over_then, jobs_over, jobs_total, moved_at (null when
--   never), q50_at (null when not shown), is_sent (the last forecast counted time for sending, and no instance is unsent).
SELECT
    batch.batch_id, last.made_at, batch.completion_at, coalesce(last.jobs_over, 0) AS jobs_over_then,
    total.jobs_over, batch.jobs_total, batch.moved_at, batch.completion_q50_at AS q50_at,
    sending.is_sent
FROM batch
LEFT JOIN batch_forecast AS last ON last.batch_id = batch.batch_id
CROSS JOIN LATERAL (
    SELECT coalesce(sum(jobs_validated + jobs_failed), 0)::bigint AS jobs_over, coalesce(sum(unsent), 0) AS unsent
    FROM batch_count
    WHERE batch_count.batch_id = batch.batch_id
) AS total
CROSS JOIN LATERAL (
    SELECT coalesce(
        total.unsent = 0 AND (
            SELECT (forecast.terms ->> 'sending_s')::double precision > 0
            FROM forecast
            WHERE forecast.batch_id = last.batch_id AND forecast.made_at = last.made_at
        ),
        false
    ) AS is_sent
) AS sending
WHERE batch.state = 'active' AND (
    last.made_at IS NULL
    OR last.made_at <= $1::double precision - $3::double precision
    OR (
        coalesce(batch.moved_at + $6::double precision <= $1, true)
        AND (
            last.made_at <= $1::double precision - greatest(
                $2::double precision, $4::double precision * coalesce(batch.completion_at - last.made_at, 0)
            )
            OR (last.jobs_over < $5::int AND total.jobs_over >= greatest(1, 2 * last.jobs_over))
            OR (
                last.made_at <= $1::double precision - $2::double precision
                AND total.jobs_over - last.jobs_over >= $4::double precision * batch.jobs_total
            )
            OR last.made_at < batch.moved_at + $6::double precision
            OR (
                last.made_at <= $1::double precision - $2::double precision
                AND (batch.completion_q50_at <= $1 OR sending.is_sent OR total.jobs_over < last.jobs_over)
            )
        )
    )
)
ORDER BY last.made_at NULLS FIRST, batch.batch_id;


-- name: forecast_app
-- Purpose: return an app's versions and the sizes of the sampled tables.
-- Arguments: $1 app_id, $2 start of the relevant history.
-- Result: app_id, app_version_ids, withdrawn (those of them that are); in pages: hav_pages, host_pages, sent_pages
--   (instances, and the months of the history). No row if there is no such app.
SELECT
    app.app_id, version.ids AS app_version_ids, version.withdrawn,
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
    SELECT
        coalesce(array_agg(app_version_id ORDER BY app_version_id), '{}') AS ids,
        coalesce(array_agg(app_version_id) FILTER (WHERE app_version.withdrawn IS NOT NULL), '{}') AS withdrawn
    FROM app_version
    WHERE app_version.app_id = app.app_id
) AS version
WHERE app.app_id = $1;


-- name: forecast_batch
-- Purpose: return an active batch's terms and the sizes of the sampled tables.
-- Arguments: $1 batch_id, $2 start of the relevant history.
-- Result: app_id, qos, deadline_at, unpaid, created_at, moved_at, order_tier, foremost_tier (null: not moved, or not since a pause),
--   delay_bound_s, held (by a limit or a pause, also of the project), app_version_ids, withdrawn (those of them that are); in pages:
--   hav_pages, host_pages, sent_pages (instances, and the months of the history). No row unless the batch is active.
SELECT
    batch.app_id, batch.qos, batch.deadline_at, batch.unpaid, batch.created_at, batch.moved_at, batch.order_tier,
    batch.foremost_tier, class.delay_bound_s, version.ids AS app_version_ids, version.withdrawn,
    batch.hold IS NOT NULL OR EXISTS (
        SELECT FROM restriction
        WHERE (kind, name) IN (('batch', $1::bigint::text), ('app', batch.app_id::text), ('queue', batch.queue))
    ) OR EXISTS (SELECT FROM setting WHERE key = 'project.down' AND value = 'true'::jsonb) AS held,
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
    SELECT
        coalesce(array_agg(app_version_id ORDER BY app_version_id), '{}') AS ids,
        coalesce(array_agg(app_version_id) FILTER (WHERE app_version.withdrawn IS NOT NULL), '{}') AS withdrawn
    FROM app_version
    WHERE app_version.app_id = batch.app_id
) AS version
WHERE batch.batch_id = $1 AND batch.ended_at IS NULL;  -- true for an active batch, which is found by its id alone


-- name: forecast_curve
-- Purpose: return the history of a batch's forecasts, for a chart.
-- Arguments: $1 batch_id, $2 into how many spans of equal length their time is divided.
-- Result: the first forecast of each span and the last of all, in order of time.
SELECT DISTINCT ON (spanned.span)
    spanned.made_at, spanned.q50_at, spanned.q90_at, spanned.method,
    (spanned.jobs_validated + spanned.jobs_failed)::double precision / greatest(1, spanned.jobs_total) AS over_fraction
FROM (
    SELECT
        forecast.*,
        CASE WHEN ends.last_at > ends.first_at THEN floor(
            (forecast.made_at - ends.first_at) * $2::int / (ends.last_at - ends.first_at)
        ) ELSE 0 END AS span
    FROM forecast
    CROSS JOIN (SELECT min(made_at) AS first_at, max(made_at) AS last_at FROM forecast WHERE batch_id = $1) AS ends
    WHERE forecast.batch_id = $1
) AS spanned
ORDER BY spanned.span, spanned.made_at;


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


-- name: forecast_health
-- Purpose: return the state of forecasting per app: the age of the latest forecasts, and the accuracy for ended
--   batches.
-- Arguments: none.
-- Result: by app_id: app_id, app_name, active_batches, never_forecast, oldest_at and latest_at (null when no active batch was
--   forecast), and the columns of app_forecast (null when none of its batches was scored).
SELECT
    app.app_id, app.name AS app_name, coalesce(active.batches, 0) AS active_batches,
    coalesce(active.never_forecast, 0) AS never_forecast, active.oldest_at, active.latest_at,
    found.scored_at, found.batches, found.coverage_q10, found.coverage_q50, found.coverage_q90,
    found.median_error_fraction, found.median_remaining_error_fraction, found.bias_fraction, found.pinball, found.spread,
    found.spread_because
FROM app
LEFT JOIN (
    SELECT
        batch.app_id, count(*) AS batches, count(*) FILTER (WHERE last.made_at IS NULL) AS never_forecast,
        min(last.made_at) AS oldest_at, max(last.made_at) AS latest_at
    FROM batch
    LEFT JOIN batch_forecast AS last ON last.batch_id = batch.batch_id
    WHERE batch.state = 'active'
    GROUP BY batch.app_id
) AS active ON active.app_id = app.app_id
LEFT JOIN app_forecast AS found ON found.app_id = app.app_id
ORDER BY app.app_id;


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
    least(job_class.max_instances, greatest(job_class.quorum, job.copies)) AS needed,
    CASE WHEN job.retried_after IS NULL THEN 0 ELSE (
        SELECT count(*) FROM instance
        WHERE instance.job_id = job.job_id AND instance.instance_id <= job.retried_after AND instance.state <> 'cancelled'
    ) END::integer AS uncounted
FROM job
JOIN job_class ON job_class.job_class_id = job.job_class_id
WHERE job.batch_id = $1::bigint AND job.state <> 'cancelled'


-- name: forecast_made_at
-- Purpose: when a batch was forecast last.
-- Arguments: $1 batch_id.
-- Result: made_at; no row when it never was.
SELECT made_at FROM batch_forecast WHERE batch_id = $1;


-- name: forecast_places
-- Purpose: return the unsent work of active batches, in the order of sending.
-- Arguments: $1 ids of the apps whose jobs are sent.
-- Result: batch_id, app_id, qos, deadline_at, unpaid, order_tier, order_key, flop of an instance on average, unsent (0 of
--   other apps, and while a limit or pause holds the batch), in the order of the queue.
SELECT
    batch.batch_id, batch.app_id, batch.qos, batch.deadline_at, batch.unpaid, batch.order_tier, batch.order_key,
    batch.batch_flop / coalesce(batch.quorum_total, batch.jobs_total * (
        SELECT max(job_class.quorum) FROM job_class WHERE job_class.batch_id = batch.batch_id
    )) AS flop,
    CASE
        WHEN batch.hold IS NULL AND batch.app_id = ANY($1::int[])
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


-- name: forecast_scores
-- Purpose: return the scores of an app's forecasts, latest ended batches first.
-- Arguments: $1 app_id, $2 limit.
-- Result: rows of forecast_score by (ended_at, batch_id) descending, progress_fraction.
SELECT *
FROM forecast_score
WHERE app_id = $1
ORDER BY ended_at DESC, batch_id DESC, progress_fraction
LIMIT $2;


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
    sent.sent_at, coalesce(sent.reported_at, 'NaN') AS reported_at, job_class.fpops_est_flop, sent.found,
    (sent.tableoid::bigint << 32) + (sent.ctid::text::point)[0]::bigint AS page
FROM (
    SELECT *, count(*) OVER () AS found
    FROM (
        SELECT host_id, app_version_id, state, sent_at, reported_at, job_class_id, instance_id, tableoid, ctid
        FROM instance TABLESAMPLE SYSTEM ($5::real) REPEATABLE ($6::double precision)
        WHERE app_version_id = ANY($1::int[]) AND batch_id <> $2::bigint AND sent_at >= $3::double precision
        UNION ALL
        SELECT host_id, app_version_id, state, sent_at, reported_at, job_class_id, instance_id, tableoid, ctid
        FROM finished_instance TABLESAMPLE SYSTEM ($5::real) REPEATABLE ($6::double precision)
        WHERE app_version_id = ANY($1::int[]) AND batch_id <> $2::bigint AND sent_at >= $3::double precision
            AND batch_ended_at >= $3::double precision  -- nothing is sent after its batch has ended
    ) AS either
    ORDER BY hashint8(instance_id), instance_id
    LIMIT $4::bigint
) AS sent
JOIN job_class ON job_class.job_class_id = sent.job_class_id


-- name: forecast_standing
-- Purpose: return the state of an active batch at the start of a forecast.
-- Arguments: $1 batch_id.
-- Result: the row of batch_with_counts with made_at and jobs_over_then of its last forecast (nulls when there is none),
--   moved_at, is_sent (as in forecast_ages), delay_bound_s, least_spare_instances, spread (null while its app has none) and
--   checkpoint_fraction (the last one of a forecast that is scored, null when there is none). No row unless the batch is active.
SELECT
    batch_with_counts.*, last.made_at, last.jobs_over AS jobs_over_then, batch.moved_at,
    coalesce(batch_with_counts.unsent = 0 AND (made.terms ->> 'sending_s')::double precision > 0, false) AS is_sent,
    class.delay_bound_s, class.least_spare_instances, app_forecast.spread, checkpoint.checkpoint_fraction
FROM batch_with_counts
JOIN batch ON batch.batch_id = batch_with_counts.batch_id
LEFT JOIN batch_forecast AS last ON last.batch_id = batch_with_counts.batch_id
LEFT JOIN forecast AS made ON made.batch_id = last.batch_id AND made.made_at = last.made_at
LEFT JOIN app_forecast ON app_forecast.app_id = batch_with_counts.app_id
CROSS JOIN LATERAL (
    SELECT max(job_class.delay_bound_s) AS delay_bound_s, min(job_class.max_instances - job_class.quorum) AS least_spare_instances
    FROM job_class
    WHERE job_class.batch_id = batch_with_counts.batch_id
) AS class
CROSS JOIN LATERAL (
    SELECT max(forecast.checkpoint_fraction) AS checkpoint_fraction
    FROM forecast
    WHERE forecast.batch_id = batch_with_counts.batch_id AND forecast.method NOT IN ('complete', 'fallback')
) AS checkpoint
WHERE batch_with_counts.batch_id = $1 AND batch_with_counts.ended_at IS NULL;


-- name: forget_forecast_age
-- Purpose: record that a batch is no longer forecast.
-- Arguments: $1 batch_id.
-- Result: batch_id; no row when that was noted already.
DELETE FROM batch_forecast WHERE batch_id = $1 RETURNING batch_id;


-- name: insert_forecast
-- Purpose: store a forecast, as the latest of its batch.
-- Arguments: $1 batch_id, $2 made_at, $3 trigger, $4 q10_at, $5 q50_at, $6 q90_at, $7 method, $8 method_because, $9 spread,
--   $10 completion_at, $11 change, $12 because, $13 jobs_total, $14 jobs_validated, $15 jobs_failed,
--   $16 checkpoint_fraction, $17 flag, $18 terms and $19 holds (JSON).
-- Result: none.
WITH last AS (
    INSERT INTO batch_forecast (batch_id, made_at, jobs_over) VALUES ($1, $2, $14::bigint + $15::bigint)
    ON CONFLICT (batch_id) DO UPDATE SET made_at = excluded.made_at, jobs_over = excluded.jobs_over
)
INSERT INTO forecast (
    batch_id, made_at, trigger, q10_at, q50_at, q90_at, method, method_because, spread, completion_at, change, because,
    jobs_total, jobs_validated, jobs_failed, checkpoint_fraction, flag, terms, holds
)
VALUES (
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18::jsonb, $19::jsonb
);


-- name: insert_forecast_scores
-- Purpose: store the scores of an ended batch's forecasts.
-- Arguments: $1 batch_id, $2 app_id, $3 ended_at; arrays, one element per forecast: $4 progress_fraction, $5 below_q10,
--   $6 below_q50, $7 below_q90, $8 error_fraction, $9 remaining_error_fraction, $10 pinball, $11 needed_spread.
-- Result: none.
INSERT INTO forecast_score (
    batch_id, app_id, ended_at, progress_fraction, below_q10, below_q50, below_q90, error_fraction,
    remaining_error_fraction, pinball, needed_spread
)
SELECT $1, $2, $3, one.*
FROM unnest(
    $4::double precision[], $5::boolean[], $6::boolean[], $7::boolean[], $8::double precision[],
    $9::double precision[], $10::double precision[], $11::double precision[]
) AS one
ON CONFLICT (batch_id, progress_fraction) DO NOTHING;  -- scored before its failed jobs were retried


-- name: job_ends
-- Purpose: return when the jobs of an ended batch ended, from evenly spaced jobs of a large batch.
-- Arguments: $1 batch_id, $2 about how many jobs at most.
-- Result: ended_at of valid and failed jobs, in order.
SELECT chosen.ended_at
FROM (
    SELECT DISTINCT one.job_id, one.ended_at
    FROM batch
    CROSS JOIN LATERAL (
        SELECT min(bound.job_id) AS first_id, max(bound.job_id) AS last_id
        FROM (
            (SELECT job_id FROM job WHERE job.batch_id = batch.batch_id ORDER BY job_id LIMIT 1)
            UNION ALL
            (SELECT job_id FROM job WHERE job.batch_id = batch.batch_id ORDER BY job_id DESC LIMIT 1)
            UNION ALL
            (
                SELECT job_id FROM finished_job AS moved
                WHERE moved.batch_ended_at = batch.ended_at AND moved.batch_id = batch.batch_id ORDER BY job_id LIMIT 1
            )
            UNION ALL
            (
                SELECT job_id FROM finished_job AS moved
                WHERE moved.batch_ended_at = batch.ended_at AND moved.batch_id = batch.batch_id ORDER BY job_id DESC LIMIT 1
            )
        ) AS bound
    ) AS ids
    CROSS JOIN LATERAL generate_series(
        ids.first_id, ids.last_id, greatest(1, (ids.last_id - ids.first_id) / $2::bigint)
    ) AS step (job_id)
    CROSS JOIN LATERAL (
        SELECT found.job_id, found.state, found.ended_at
        FROM (
            (
                SELECT job_id, state, ended_at FROM job
                WHERE job.batch_id = batch.batch_id AND job.job_id >= step.job_id ORDER BY job_id LIMIT 1
            )
            UNION ALL
            (
                SELECT job_id, state, ended_at FROM finished_job AS moved
                WHERE moved.batch_ended_at = batch.ended_at AND moved.batch_id = batch.batch_id
                    AND moved.job_id >= step.job_id
                ORDER BY job_id LIMIT 1
            )
        ) AS found
        ORDER BY found.job_id
        LIMIT 1
    ) AS one
    WHERE batch.batch_id = $1 AND one.state <> 'cancelled' AND one.ended_at IS NOT NULL  -- open ones while an abort is written
) AS chosen
ORDER BY chosen.ended_at;


-- name: last_forecasts
-- Purpose: return the latest forecast of each of some active batches, since it was reopened if it had ended.
-- Arguments: $1 batch_ids (array).
-- Result: rows of forecast, one at most for each batch, with its moved_at (null: never).
SELECT forecast.*, batch.moved_at
FROM batch_forecast AS last
JOIN forecast ON forecast.batch_id = last.batch_id AND forecast.made_at = last.made_at
JOIN batch ON batch.batch_id = last.batch_id
WHERE last.batch_id = ANY($1::bigint[]);


-- name: list_forecasts
-- Purpose: return the forecasts of a batch.
-- Arguments: $1 batch_id, $2 limit.
-- Result: the last rows of forecast, latest first.
SELECT * FROM forecast WHERE batch_id = $1 ORDER BY made_at DESC LIMIT $2;


-- name: publish_completion
-- Purpose: publish a batch's expected completion.
-- Arguments: $1 batch_id, $2 completion_at, $3 completion_q50_at, $4 completion_q90_at (null: none is shown).
-- Result: batch_id; no row unless the batch is active.
UPDATE batch SET completion_at = $2, completion_q50_at = $3, completion_q90_at = $4
WHERE batch_id = $1 AND ended_at IS NULL  -- true for an active batch, which is found by its id alone
RETURNING batch_id;


-- name: thin_ended_forecasts
-- Purpose: of an ended batch's forecasts without a change, keep the checkpoints and the first of each interval.
-- Arguments: $1 batch_id, $2 seconds of a part.
-- Result: none.
DELETE FROM forecast
WHERE batch_id = $1 AND change = 'held' AND checkpoint_fraction IS NULL
    AND EXISTS (
        SELECT
        FROM forecast AS earlier
        WHERE earlier.batch_id = $1
            AND earlier.made_at >= floor(forecast.made_at / $2::double precision) * $2::double precision
            AND earlier.made_at < forecast.made_at
    );


-- name: thin_forecasts
-- Purpose: before a forecast is stored, delete one of the same instant and, in a past period, all but the first of
--   each interval among those without a change.
-- Arguments: $1 batch_id, $2 made_at of the new one, $3 from and $4 to, the while; $5 seconds of a part.
-- Result: none.
DELETE FROM forecast
WHERE batch_id = $1
    AND (
        made_at = $2
        OR (
            made_at >= $3::double precision AND made_at < $4::double precision
            AND change = 'held' AND checkpoint_fraction IS NULL
            AND EXISTS (
                SELECT
                FROM forecast AS earlier
                WHERE earlier.batch_id = $1
                    AND earlier.made_at >= floor(forecast.made_at / $5::double precision) * $5::double precision
                    AND earlier.made_at < forecast.made_at
            )
        )
    );


-- name: upsert_app_forecast
-- Purpose: store the accuracy of an app's forecasts, and the spread for the next ones.
-- Arguments: $1 app_id, $2 scored_at, $3 batches, $4 coverage_q10, $5 coverage_q50, $6 coverage_q90,
--   $7 median_error_fraction, $8 median_remaining_error_fraction, $9 bias_fraction, $10 pinball, $11 spread,
--   $12 spread_because.
-- Result: none.
INSERT INTO app_forecast (
    app_id, scored_at, batches, coverage_q10, coverage_q50, coverage_q90, median_error_fraction,
    median_remaining_error_fraction, bias_fraction, pinball, spread, spread_because
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
ON CONFLICT (app_id) DO UPDATE SET
    scored_at = excluded.scored_at, batches = excluded.batches, coverage_q10 = excluded.coverage_q10,
    coverage_q50 = excluded.coverage_q50, coverage_q90 = excluded.coverage_q90,
    median_error_fraction = excluded.median_error_fraction,
    median_remaining_error_fraction = excluded.median_remaining_error_fraction,
    bias_fraction = excluded.bias_fraction, pinball = excluded.pinball, spread = excluded.spread,
    spread_because = excluded.spread_because;
