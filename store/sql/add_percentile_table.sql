-- Purpose: make the table that a generation's percentiles are written into; nobody sees it yet.
-- Arguments: $1 generation.
-- Result: its name.
SELECT add_percentile_table($1) AS name;
