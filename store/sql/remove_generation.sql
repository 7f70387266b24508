-- Purpose: remove a generation with all that belongs to it; gives up when its percentiles are read for too long.
-- Arguments: $1 generation.
-- Result: one row without meaning.
SELECT remove_generation($1);
