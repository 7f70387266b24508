-- Purpose: write the cut points of one (app, processor type) of a generation.
-- Arguments: $1 generation, $2 app_id, $3 processor_type, $4 n, $5 turnaround, $6 consecutive_valid, $7 score_mean,
--   $8 tight_n, $9 tight_mean, $10 tight_sd, $11 retry_turnaround_s, $12 median_safe_runtime_s.
-- Result: none.
INSERT INTO cut_points (
    generation, app_id, processor_type, n, turnaround, consecutive_valid, score_mean, tight_n, tight_mean, tight_sd,
    retry_turnaround_s, median_safe_runtime_s
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);
