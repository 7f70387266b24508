-- name: duty_deadlines
-- Purpose: by when each duty of background processes is to be done, as the process that does it reported last.
-- Arguments: $1 since when a process reported.
-- Result: name, deadline_at, by name; none of a duty that no process ever did.
SELECT duty ->> 'name' AS name, max((duty ->> 'deadline_at')::double precision) AS deadline_at
FROM process_report CROSS JOIN LATERAL jsonb_array_elements(report -> 'duties') AS duty
WHERE kind = 'background' AND reported_at >= $1 AND duty ->> 'deadline_at' IS NOT NULL
GROUP BY 1
ORDER BY 1;


-- name: end_simulation
-- Purpose: the end of a simulation that is under way.
-- Arguments: $1 simulation_id, $2 heard_at, $3 state, $4 result (JSON or null), $5 failure or null.
-- Result: simulation_id; no row when it is not under way any more.
UPDATE simulation
SET state = $3, heard_at = $2, result = $4::jsonb, failure = $5,
    done_fraction = CASE $3 WHEN 'done' THEN 1 ELSE done_fraction END
WHERE simulation_id = $1 AND state = 'running'
RETURNING simulation_id;


-- name: failures_of_gone
-- Purpose: what workers that are silent by now counted of requests that failed.
-- Arguments: $1 since when they spoke last, $2 until when, this not included.
-- Result: what each says failed, by its name.
SELECT report -> 'failed' AS failed
FROM process_report
WHERE kind = 'worker' AND reported_at >= $1 AND reported_at < $2 AND report ? 'failed'
ORDER BY name;


-- name: forget_processes
-- Purpose: forget processes that have said nothing for long.
-- Arguments: $1 since when.
-- Result: none.
DELETE FROM process_report WHERE reported_at < $1;


-- name: forget_simulations
-- Purpose: forget simulations but for the latest.
-- Arguments: $1 how many are kept.
-- Result: none.
DELETE FROM simulation
WHERE simulation_id <= (SELECT simulation_id FROM simulation ORDER BY simulation_id DESC LIMIT 1 OFFSET $1);


-- name: insert_simulation
-- Purpose: a simulation that is asked for, unless as many as may are under way.
-- Arguments: $1 asked_at, $2 asked_by, $3 what (JSON), $4 since when one under way must have been heard from, $5 how many may.
-- Result: simulation_id; no row when as many are under way.
INSERT INTO simulation (asked_at, asked_by, asked, heard_at)
SELECT $1, $2, $3::jsonb, $1
WHERE (SELECT count(*) FROM simulation WHERE state = 'running' AND heard_at >= $4) < $5
RETURNING simulation_id;


-- name: list_processes
-- Purpose: what processes said of themselves last.
-- Arguments: $1 since when.
-- Result: reports by kind and name.
SELECT name, kind, reported_at, report FROM process_report WHERE reported_at >= $1 ORDER BY kind, name;


-- name: list_simulations
-- Purpose: simulations that were asked for, without their results.
-- Arguments: $1 limit.
-- Result: simulations, newest first.
SELECT simulation_id, asked_at, asked_by, asked, state, heard_at, done_fraction, NULL::jsonb AS result, failure
FROM simulation
ORDER BY simulation_id DESC
LIMIT $1;


-- name: note_process
-- Purpose: keep what a process says of itself.
-- Arguments: $1 name, $2 kind, $3 reported_at, $4 report (JSON).
-- Result: none.
INSERT INTO process_report (name, kind, reported_at, report) VALUES ($1, $2, $3, $4::jsonb)
ON CONFLICT (name) DO UPDATE
SET kind = excluded.kind, reported_at = excluded.reported_at, report = excluded.report
WHERE process_report.reported_at <= excluded.reported_at;


-- name: note_simulation
-- Purpose: how far a simulation that is under way has come.
-- Arguments: $1 simulation_id, $2 heard_at, $3 done_fraction.
-- Result: simulation_id; no row when it is not under way any more.
UPDATE simulation SET heard_at = $2, done_fraction = greatest(done_fraction, $3)
WHERE simulation_id = $1 AND state = 'running'
RETURNING simulation_id;


-- name: simulation_by_id
-- Purpose: one simulation.
-- Arguments: $1 simulation_id.
-- Result: its row; none when there is no such simulation.
SELECT * FROM simulation WHERE simulation_id = $1;
