-- Purpose: what a duty found last.
-- Arguments: $1 name.
-- Result: report (JSON); no row before the first time.
SELECT report FROM duty WHERE name = $1;
