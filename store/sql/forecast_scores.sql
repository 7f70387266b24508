-- Purpose: the scores of an app's forecasts, those of the batches that ended last first.
-- Arguments: $1 app_id, $2 limit.
-- Result: rows of forecast_score by (ended_at, batch_id) descending, progress_fraction.
SELECT *
FROM forecast_score
WHERE app_id = $1
ORDER BY ended_at DESC, batch_id DESC, progress_fraction
LIMIT $2;
