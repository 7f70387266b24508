-- Purpose: a limit less.
-- Arguments: $1 scope, $2 quantity, $3 name, empty for everybody's.
-- Result: its scope; no row when there was none.
DELETE FROM work_limit WHERE scope = $1 AND quantity = $2 AND name = $3
RETURNING scope;
