-- name: add_percentile_table
-- Purpose: make the table that a generation's percentiles are written into; nobody sees it yet.
-- Arguments: $1 generation.
-- Result: its name.
SELECT add_percentile_table($1) AS name;


-- name: attach_percentile_table
-- Purpose: index a generation's percentiles and make them a part of host_percentile.
-- Arguments: $1 generation.
-- Result: one row without meaning.
SELECT attach_percentile_table($1);


-- name: broken_generations
-- Purpose: what runs that were broken off left behind. Whoever asks has the right to run, so that no run is under way.
-- Arguments: none.
-- Result: generation.
SELECT generation FROM percentile_generation WHERE NOT complete ORDER BY generation;


-- name: insert_cut_points
-- Purpose: write the cut points of one (app, processor type) of a generation.
-- Arguments: $1 generation, $2 app_id, $3 processor_type, $4 n, $5 turnaround, $6 consecutive_valid, $7 score_mean,
--   $8 tight_n, $9 tight_mean, $10 tight_sd, $11 retry_turnaround_s, $12 median_safe_runtime_s.
-- Result: none.
INSERT INTO cut_points (
    generation, app_id, processor_type, n, turnaround, consecutive_valid, score_mean, tight_n, tight_mean, tight_sd,
    retry_turnaround_s, median_safe_runtime_s
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);


-- name: insert_generation
-- Purpose: begin a generation of the host statistics.
-- Arguments: $1 computed_at, $2 whether it will have the percentiles of every row.
-- Result: generation.
INSERT INTO percentile_generation (computed_at, with_percentiles) VALUES ($1, $2) RETURNING generation;


-- name: list_statistics_runs
-- Purpose: runs of the host statistics that were published, newest first.
-- Arguments: $1 limit.
-- Result: rows of host_statistics_run.
SELECT generation, is_full, started_at, seconds, parts
FROM host_statistics_run
ORDER BY generation DESC
LIMIT $1;


-- name: old_generations
-- Purpose: generations older than the previous one; of those with percentiles, the present and the previous stay.
-- Arguments: none.
-- Result: generation.
SELECT old.generation
FROM percentile_generation AS old
WHERE
    old.complete
    AND (
        SELECT count(*) FROM percentile_generation AS newer
        WHERE newer.complete AND newer.generation > old.generation
    ) > 1
    AND (
        NOT old.with_percentiles
        OR (
            SELECT count(*) FROM percentile_generation AS newer
            WHERE newer.complete AND newer.with_percentiles AND newer.generation > old.generation
        ) > 1
    )
ORDER BY old.generation;


-- name: percentiles_of_host
-- Purpose: where a host stood by the last full run of the host statistics.
-- Arguments: $1 host_id.
-- Result: host_id, app_version_id, p, x, y.
SELECT host_id, app_version_id, p, x, y
FROM host_percentile
WHERE
    host_id = $1
    AND generation = (
        SELECT generation FROM percentile_generation
        WHERE complete AND with_percentiles ORDER BY generation DESC LIMIT 1
    )
ORDER BY app_version_id;


-- name: remove_generation
-- Purpose: remove a generation with all that belongs to it; gives up when its percentiles are read for too long.
-- Arguments: $1 generation.
-- Result: one row without meaning.
SELECT remove_generation($1);


-- name: remove_old_runs
-- Purpose: forget runs of the host statistics but the newest.
-- Arguments: $1 how many stay.
-- Result: none.
DELETE FROM host_statistics_run
WHERE generation <= (
    SELECT generation FROM host_statistics_run ORDER BY generation DESC OFFSET $1 LIMIT 1
);


-- name: switch_generation
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
