-- Purpose: delete trickle messages whose time is over, some at a time.
-- Arguments: $1 before when, $2 limit.
-- Result: none.
DELETE FROM trickle WHERE (instance_id, trickle_id) IN (
    SELECT instance_id, trickle_id FROM trickle WHERE received_at < $1 ORDER BY received_at LIMIT $2 FOR UPDATE SKIP LOCKED
);
