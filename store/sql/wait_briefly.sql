-- Purpose: let this transaction wait for a lock no longer than two seconds.
-- Arguments: none.
-- Result: none.
SET LOCAL lock_timeout = '2s';
