-- Purpose: switch to a generation that is written, and note the run that made it; nothing when another run removed it.
-- Arguments: $1 generation, $2 full, $3 started_at, $4 seconds, $5 parts (JSON).
-- Result: the generation, if it is now the present one.
WITH written AS (
    UPDATE percentile_generation SET complete = true WHERE generation = $1 AND NOT complete RETURNING generation
),
noted AS (
    INSERT INTO host_statistics_run (generation, is_full, started_at, seconds, parts)
    SELECT generation, $2::boolean, $3::double precision, $4::double precision, $5::jsonb FROM written
)
INSERT INTO percentile_pointer (generation)
SELECT generation FROM written
ON CONFLICT (only_row) DO UPDATE SET generation = excluded.generation
RETURNING generation;
