-- Purpose: how forecasting goes, app by app: how old the last forecasts are, and how good those of ended batches were.
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
