-- Purpose: the forecasts of a batch.
-- Arguments: $1 batch_id, $2 limit.
-- Result: the last rows of forecast, latest first.
SELECT * FROM forecast WHERE batch_id = $1 ORDER BY made_at DESC LIMIT $2;
