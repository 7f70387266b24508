-- Purpose: forget processes that have said nothing for long.
-- Arguments: $1 since when.
-- Result: none.
DELETE FROM process_report WHERE reported_at < $1;
