-- Purpose: one simulation.
-- Arguments: $1 simulation_id.
-- Result: its row; none when there is no such simulation.
SELECT * FROM simulation WHERE simulation_id = $1;
