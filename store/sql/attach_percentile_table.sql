-- Purpose: index a generation's percentiles and make them a part of host_percentile.
-- Arguments: $1 generation.
-- Result: one row without meaning.
SELECT attach_percentile_table($1);
