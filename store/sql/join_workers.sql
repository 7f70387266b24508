-- Purpose: say that this worker lives; held until the connection ends.
-- Arguments: $1 class.
-- Result: none.
SELECT pg_advisory_lock_shared($1, -1);
