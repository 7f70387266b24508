-- Purpose: one changed setting, locked until the transaction ends.
-- Arguments: $1 key.
-- Result: value (JSON); no row when it has its default.
SELECT value FROM setting WHERE key = $1 FOR UPDATE;
