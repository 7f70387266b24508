-- Purpose: wait for our turn to migrate; held until the connection ends.
-- Arguments: none.
-- Result: none.
SELECT pg_advisory_lock(19797, 1);
