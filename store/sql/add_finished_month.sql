-- Purpose: make the partitions of a month of the history unless they are there.
-- Arguments: $1 month, $2 starts_at, $3 ends_at.
-- Result: one row without meaning.
SELECT add_finished_month($1, $2, $3);
