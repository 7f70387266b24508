-- Purpose: keys whose time is over, some at a time.
-- Arguments: $1 before when, $2 limit.
-- Result: none.
DELETE FROM submission_key WHERE (owner, key) IN (
    SELECT owner, key FROM submission_key WHERE created_at < $1 ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED
);
