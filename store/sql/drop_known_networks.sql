-- Purpose: forget networks from which nobody has signed in for long, some at a time.
-- Arguments: $1 before when, $2 limit.
-- Result: none.
DELETE FROM known_network WHERE (who, network) IN (
    SELECT who, network FROM known_network WHERE at < $1 ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED
);
