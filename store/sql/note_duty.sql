-- Purpose: note that a duty was done.
-- Arguments: $1 name, $2 done_at.
-- Result: none.
INSERT INTO duty (name, done_at) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE SET done_at = greatest(duty.done_at, excluded.done_at);
