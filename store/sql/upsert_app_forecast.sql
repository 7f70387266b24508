-- Purpose: note how good an app's forecasts are, and the spread of the next ones.
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
