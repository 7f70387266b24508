-- Purpose: the cut points of the histories, as a run of the host statistics would leave them.
-- Arguments: $1 computed_at, $2 app_id.
-- Result: none.
WITH generation AS (
    INSERT INTO percentile_generation (computed_at, complete) VALUES ($1::double precision, true) RETURNING generation
),
pointer AS (
    INSERT INTO percentile_pointer (generation) SELECT generation FROM generation
),
population AS (
    SELECT avg(relaxed_sum / relaxed_n) AS score_mean FROM host_app_version
),
score AS (
    SELECT
        consecutive_valid, score_mean, tight_sum / tight_n AS tight,
        (relaxed_sum + 2 * score_mean) / (relaxed_n + 2) AS score
    FROM host_app_version
    CROSS JOIN population
)
INSERT INTO cut_points (
    generation, app_id, processor_type, n, turnaround, consecutive_valid, score_mean, tight_n, tight_mean, tight_sd,
    retry_turnaround_s
)
SELECT
    (SELECT generation FROM generation), $2::int, 'cpu', count(*),
    percentile_cont(ARRAY(SELECT (i + 0.5) / 1000 FROM generate_series(0, 999) AS i)) WITHIN GROUP (ORDER BY score),
    ARRAY(
        SELECT (SELECT count(*) FROM score AS row WHERE row.consecutive_valid = k)
        FROM generate_series(0, 10) AS k
        ORDER BY k
    ),
    avg(score_mean), 50 * count(*), avg(tight), 0.4, 7200
FROM score;
