-- name: count_active_hosts
-- Purpose: count the hosts with a recent request.
-- Arguments: $1 instant since which a request counts.
-- Result: hosts. It reads every host; the caller asks a few times per hour.
SELECT count(*) AS hosts FROM host WHERE last_rpc_at >= $1;


-- name: delete_samples
-- Purpose: delete samples that are old, or later than now because a clock was wrong.
-- Arguments: $1 step_s, $2 before which, $3 after which, $4 limit of rows.
-- Result: none.
DELETE FROM sample
WHERE step_s = $1 AND at IN (
    SELECT at FROM sample WHERE step_s = $1 AND (at < $2 OR at > $3) LIMIT $4
);


-- name: last_sample
-- Purpose: return the instant of the latest sample of a step.
-- Arguments: $1 step_s, $2 until when.
-- Result: at; no row without samples.
SELECT at FROM sample WHERE step_s = $1 AND at <= $2 ORDER BY at DESC LIMIT 1;


-- name: list_samples
-- Purpose: return the samples of a period.
-- Arguments: $1 step_s, $2 since when, $3 until when, this not included, $4 limit of rows.
-- Result: at, figures (JSON), in order.
SELECT at, figures FROM sample WHERE step_s = $1 AND at >= $2 AND at < $3 ORDER BY at LIMIT $4;


-- name: write_sample
-- Purpose: store a sample, instead of an earlier one of the same step.
-- Arguments: $1 step_s, $2 at, $3 figures (JSON).
-- Result: none.
INSERT INTO sample (step_s, at, figures) VALUES ($1, $2, $3::jsonb)
ON CONFLICT (step_s, at) DO UPDATE SET figures = excluded.figures;
