-- Purpose: a simulation that is asked for, unless as many as may are under way.
-- Arguments: $1 asked_at, $2 asked_by, $3 what (JSON), $4 since when one under way must have been heard from, $5 how many may.
-- Result: simulation_id; no row when as many are under way.
INSERT INTO simulation (asked_at, asked_by, asked, heard_at)
SELECT $1, $2, $3::jsonb, $1
WHERE (SELECT count(*) FROM simulation WHERE state = 'running' AND heard_at >= $4) < $5
RETURNING simulation_id;
