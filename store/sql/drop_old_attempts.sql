-- Purpose: failures of long ago are forgotten, some at a time.
-- Arguments: $1 before when, $2 limit.
-- Result: none.
DELETE FROM sign_in_attempt WHERE key IN (
    SELECT key FROM sign_in_attempt WHERE at < $1 ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED
);
