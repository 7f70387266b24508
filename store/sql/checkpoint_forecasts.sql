-- Purpose: the forecasts of some batches that are scored: the model's own at their checkpoints.
-- Arguments: $1 batch_ids (array).
-- Result: batch_id, checkpoint_fraction, made_at, q10_at, q50_at, q90_at, spread; by batch_id and checkpoint_fraction.
SELECT batch_id, checkpoint_fraction, made_at, q10_at, q50_at, q90_at, spread
FROM forecast
WHERE batch_id = ANY($1::bigint[]) AND checkpoint_fraction IS NOT NULL AND method NOT IN ('complete', 'fallback')
ORDER BY batch_id, checkpoint_fraction;
