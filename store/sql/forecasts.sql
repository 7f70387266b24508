-- name: app_forecasts
-- Purpose: return the accuracy of each app's forecasts.
-- Arguments: none.
-- Result: rows of app_forecast by app_id.
SELECT * FROM app_forecast ORDER BY app_id;


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
-- Purpose: return the active batches due for a forecast if any of their jobs ended since the last one, oldest
--   forecast first.
-- Arguments: $1 now, $2 pause_s, $3 timer_s, $4 the fraction of the remaining time for which validations are collected,
--   $5 the number of ended jobs up to which each doubling is due at once.
-- Result: batch_id, made_at (null when never), completion_at, jobs_over_then, jobs_over.
SELECT
    batch.batch_id, last.made_at, batch.completion_at, coalesce(last.jobs_over, 0) AS jobs_over_then,
    total.jobs_over
FROM batch
LEFT JOIN batch_forecast AS last ON last.batch_id = batch.batch_id
CROSS JOIN LATERAL (
    SELECT coalesce(sum(jobs_validated + jobs_failed), 0)::bigint AS jobs_over
    FROM batch_count
    WHERE batch_count.batch_id = batch.batch_id
) AS total
WHERE batch.state = 'active' AND (
    last.made_at IS NULL
    OR last.made_at <= $1::double precision - least($3::double precision, greatest(
        $2::double precision, $4::double precision * coalesce(batch.completion_at - last.made_at, 0)
    ))
    OR (last.jobs_over < $5::int AND total.jobs_over >= greatest(1, 2 * last.jobs_over))
)
ORDER BY last.made_at NULLS FIRST, batch.batch_id;


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


-- name: forecast_made_at
-- Purpose: when a batch was forecast last.
-- Arguments: $1 batch_id.
-- Result: made_at; no row when it never was.
SELECT made_at FROM batch_forecast WHERE batch_id = $1;


-- name: forecast_scores
-- Purpose: return the scores of an app's forecasts, latest ended batches first.
-- Arguments: $1 app_id, $2 limit.
-- Result: rows of forecast_score by (ended_at, batch_id) descending, progress_fraction.
SELECT *
FROM forecast_score
WHERE app_id = $1
ORDER BY ended_at DESC, batch_id DESC, progress_fraction
LIMIT $2;


-- name: forecast_standing
-- Purpose: return the state of an active batch at the start of a forecast.
-- Arguments: $1 batch_id.
-- Result: the row of batch_with_counts with made_at and jobs_over_then of its last forecast (nulls when there is none),
--   delay_bound_s, least_spare_instances, spread (null while its app has none) and
--   checkpoint_fraction (the last one of a forecast that is scored, null when there is none). No row unless the batch is active.
SELECT
    batch_with_counts.*, last.made_at, last.jobs_over AS jobs_over_then, class.delay_bound_s, class.least_spare_instances,
    app_forecast.spread, checkpoint.checkpoint_fraction
FROM batch_with_counts
LEFT JOIN batch_forecast AS last ON last.batch_id = batch_with_counts.batch_id
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


-- name: last_forecasts
-- Purpose: return the latest forecast of each of some batches.
-- Arguments: $1 batch_ids (array).
-- Result: rows of forecast, one at most for each batch.
SELECT last.*
FROM unnest($1::bigint[]) AS wanted (batch_id)
CROSS JOIN LATERAL (
    SELECT * FROM forecast WHERE forecast.batch_id = wanted.batch_id ORDER BY made_at DESC LIMIT 1
) AS last;


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
