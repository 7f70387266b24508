-- Purpose: how often did signing in fail? The row is locked until the transaction ends.
-- Arguments: $1 key, $2 now.
-- Result: failures and when the last one was.
INSERT INTO sign_in_attempt (key, failures, at) VALUES ($1, 0, $2)
ON CONFLICT (key) DO UPDATE SET key = excluded.key
RETURNING failures, at;
