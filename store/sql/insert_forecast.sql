-- Purpose: keep a forecast, as the last one of its batch.
-- Arguments: $1 batch_id, $2 made_at, $3 trigger, $4 q10_at, $5 q50_at, $6 q90_at, $7 method, $8 method_because, $9 spread,
--   $10 completion_at, $11 change, $12 because, $13 jobs_total, $14 jobs_validated, $15 jobs_failed,
--   $16 checkpoint_fraction, $17 at_risk, $18 flag, $19 terms and $20 holds (JSON).
-- Result: none.
WITH last AS (
    INSERT INTO batch_forecast (batch_id, made_at, jobs_over) VALUES ($1, $2, $14::bigint + $15::bigint)
    ON CONFLICT (batch_id) DO UPDATE SET made_at = excluded.made_at, jobs_over = excluded.jobs_over
)
INSERT INTO forecast (
    batch_id, made_at, trigger, q10_at, q50_at, q90_at, method, method_because, spread, completion_at, change, because,
    jobs_total, jobs_validated, jobs_failed, checkpoint_fraction, at_risk, flag, terms, holds
)
VALUES (
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19::jsonb, $20::jsonb
);
