-- Purpose: begin a generation of the host statistics.
-- Arguments: $1 computed_at, $2 whether it will have the percentiles of every row.
-- Result: generation.
INSERT INTO percentile_generation (computed_at, with_percentiles) VALUES ($1, $2) RETURNING generation;
