-- Purpose: simulations that were asked for, without their results.
-- Arguments: $1 limit.
-- Result: simulations, newest first.
SELECT simulation_id, asked_at, asked_by, asked, state, heard_at, done_fraction, NULL::jsonb AS result, failure
FROM simulation
ORDER BY simulation_id DESC
LIMIT $1;
