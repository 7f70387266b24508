-- name: duty_deadlines
-- Purpose: return the deadline of each periodic task, as last reported by the process that runs it.
-- Arguments: $1 since when a process reported.
-- Result: name, deadline_at, by name; none of a duty that no process ever did.
SELECT duty ->> 'name' AS name, max((duty ->> 'deadline_at')::double precision) AS deadline_at
FROM process_report CROSS JOIN LATERAL jsonb_array_elements(report -> 'duties') AS duty
WHERE kind = 'background' AND reported_at >= $1 AND duty ->> 'deadline_at' IS NOT NULL
GROUP BY 1
ORDER BY 1;


-- name: end_simulation
-- Purpose: end a running simulation.
-- Arguments: $1 simulation_id, $2 heard_at, $3 state, $4 result (JSON or null), $5 failure or null.
-- Result: simulation_id; no row when it is no longer running.
UPDATE simulation
SET state = $3, heard_at = $2, result = $4::jsonb, failure = $5,
    done_fraction = CASE $3 WHEN 'done' THEN 1 ELSE done_fraction END
WHERE simulation_id = $1 AND state = 'running'
RETURNING simulation_id;


-- name: failures_of_gone
-- Purpose: return the failed requests counted by workers that are now silent.
-- Arguments: $1 since when they spoke last, $2 until when, this not included.
-- Result: what each says failed, by its name.
SELECT report -> 'failed' AS failed
FROM process_report
WHERE kind = 'worker' AND reported_at >= $1 AND reported_at < $2 AND report ? 'failed'
ORDER BY name;


-- name: forget_processes
-- Purpose: delete reports of processes that have been silent for long.
-- Arguments: $1 since when.
-- Result: none.
DELETE FROM process_report WHERE reported_at < $1;


-- name: forget_simulations
-- Purpose: delete all but the latest simulations.
-- Arguments: $1 how many are kept.
-- Result: none.
DELETE FROM simulation
WHERE simulation_id <= (SELECT simulation_id FROM simulation ORDER BY simulation_id DESC LIMIT 1 OFFSET $1);


-- name: insert_simulation
-- Purpose: insert a requested simulation, unless the maximum number is running.
-- Arguments: $1 asked_at, $2 asked_by, $3 what (JSON), $4 since when a running one must have reported, $5 the maximum.
-- Result: simulation_id; no row when the maximum number is running.
INSERT INTO simulation (asked_at, asked_by, asked, heard_at)
SELECT $1, $2, $3::jsonb, $1
WHERE (SELECT count(*) FROM simulation WHERE state = 'running' AND heard_at >= $4) < $5
RETURNING simulation_id;


-- name: list_processes
-- Purpose: return the latest reports of processes.
-- Arguments: $1 since when, $2 of which kind, null for all.
-- Result: reports by kind and name.
SELECT name, kind, reported_at, report
FROM process_report
WHERE reported_at >= $1 AND kind = coalesce($2::text, kind)
ORDER BY kind, name;


-- name: list_simulations
-- Purpose: return requested simulations, without their results.
-- Arguments: $1 limit.
-- Result: simulations, newest first.
SELECT simulation_id, asked_at, asked_by, asked, state, heard_at, done_fraction, NULL::jsonb AS result, failure
FROM simulation
ORDER BY simulation_id DESC
LIMIT $1;


-- name: note_process
-- Purpose: store the report of a process.
-- Arguments: $1 name, $2 kind, $3 reported_at, $4 report (JSON).
-- Result: none.
INSERT INTO process_report (name, kind, reported_at, report) VALUES ($1, $2, $3, $4::jsonb)
ON CONFLICT (name) DO UPDATE
SET kind = excluded.kind, reported_at = excluded.reported_at, report = excluded.report
WHERE process_report.reported_at <= excluded.reported_at;


-- name: note_simulation
-- Purpose: store the progress of a running simulation.
-- Arguments: $1 simulation_id, $2 heard_at, $3 done_fraction.
-- Result: simulation_id; no row when it is no longer running.
UPDATE simulation SET heard_at = $2, done_fraction = greatest(done_fraction, $3)
WHERE simulation_id = $1 AND state = 'running'
RETURNING simulation_id;


-- name: simulation_by_id
-- Purpose: return one simulation.
-- Arguments: $1 simulation_id.
-- Result: its row; none when there is no such simulation.
SELECT * FROM simulation WHERE simulation_id = $1;
