-- Purpose: when a duty was done last; the row is locked until the transaction ends.
-- Arguments: $1 name.
-- Result: done_at; no row before the first time.
SELECT done_at FROM duty WHERE name = $1 FOR UPDATE;
