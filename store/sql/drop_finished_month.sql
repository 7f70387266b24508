-- Purpose: drop the partitions of a month of the history.
-- Arguments: $1 month, $2 dropped_at.
-- Result: one row without meaning.
SELECT drop_finished_month($1, $2);
