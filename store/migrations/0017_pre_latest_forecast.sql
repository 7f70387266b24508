-- The latest forecast of each batch. It puts the batch's deadline at risk if it rests on results and q90_at is later.
CREATE VIEW latest_forecast AS
SELECT
    forecast.batch_id, forecast.q50_at, forecast.q90_at, forecast.method NOT IN ('fallback', 'a_priori') AS has_evidence
FROM batch_forecast
JOIN forecast ON forecast.batch_id = batch_forecast.batch_id AND forecast.made_at = batch_forecast.made_at;
