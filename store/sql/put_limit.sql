-- Purpose: a limit, instead of the one of the same scope, quantity and name.
-- Arguments: $1 scope, $2 quantity, $3 name, empty for everybody's, $4 soft or null, $5 hard or null.
-- Result: none.
INSERT INTO work_limit (scope, quantity, name, soft, hard) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (scope, quantity, name) DO UPDATE SET soft = excluded.soft, hard = excluded.hard;
