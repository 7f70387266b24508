-- Purpose: what runs that were broken off left behind. Whoever asks has the right to run, so that no run is under way.
-- Arguments: none.
-- Result: generation.
SELECT generation FROM percentile_generation WHERE NOT complete ORDER BY generation;
