-- Purpose: cancel some unsent instances of a batch.
-- Arguments: $1 batch_id, $2 how many.
-- Result: instance_id, shard of each.
WITH locked AS (
    SELECT instance_id
    FROM instance
    WHERE batch_id = $1 AND state = 'unsent'
    ORDER BY instance_id
    LIMIT $2
    FOR UPDATE
)
UPDATE instance SET state = 'cancelled'
FROM locked
WHERE instance.instance_id = locked.instance_id AND instance.state = 'unsent'
RETURNING instance.instance_id, instance.shard;
