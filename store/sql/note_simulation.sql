-- Purpose: how far a simulation that is under way has come.
-- Arguments: $1 simulation_id, $2 heard_at, $3 done_fraction.
-- Result: simulation_id; no row when it is not under way any more.
UPDATE simulation SET heard_at = $2, done_fraction = greatest(done_fraction, $3)
WHERE simulation_id = $1 AND state = 'running'
RETURNING simulation_id;
