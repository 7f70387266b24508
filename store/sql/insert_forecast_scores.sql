-- Purpose: keep the scores of an ended batch's forecasts.
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
) AS one;
