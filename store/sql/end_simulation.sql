-- Purpose: the end of a simulation that is under way.
-- Arguments: $1 simulation_id, $2 heard_at, $3 state, $4 result (JSON or null), $5 failure or null.
-- Result: simulation_id; no row when it is not under way any more.
UPDATE simulation
SET state = $3, heard_at = $2, result = $4::jsonb, failure = $5,
    done_fraction = CASE $3 WHEN 'done' THEN 1 ELSE done_fraction END
WHERE simulation_id = $1 AND state = 'running'
RETURNING simulation_id;
