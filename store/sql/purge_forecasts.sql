-- Purpose: remove the forecasts of batches that ended in a month; their scores stay.
-- Arguments: $1 month.
-- Result: none.
DELETE FROM forecast
USING batch, finished_month
WHERE finished_month.month = $1
    AND batch.ended_at >= finished_month.starts_at AND batch.ended_at < finished_month.ends_at
    AND forecast.batch_id = batch.batch_id;
