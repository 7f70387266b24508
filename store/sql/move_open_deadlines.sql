-- Purpose: move the due dates of instances in progress that were not overdue at an instant.
-- Arguments: $1 by_s, $2 the instant.
-- Result: moved, the number of instances.
WITH locked AS (
    SELECT instance_id
    FROM instance
    WHERE state = 'in_progress' AND timeout_at > $2
    ORDER BY instance_id
    FOR UPDATE
),
moved AS (
    UPDATE instance SET due_at = due_at + $1, timeout_at = timeout_at + $1
    FROM locked
    WHERE instance.instance_id = locked.instance_id AND instance.state = 'in_progress'
    RETURNING instance.instance_id
)
SELECT count(*) AS moved FROM moved;
