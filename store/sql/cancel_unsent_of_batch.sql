-- Purpose: cancel some unsent instances of a batch, found by the indexes of those that wait, wherever its instances lie.
-- Arguments: $1 batch_id, $2 how many of each kind.
-- Result: instance_id, shard of each; none is left when there is no row.
WITH fresh AS (
    SELECT instance_id FROM instance
    WHERE batch_id = $1 AND state = 'unsent' AND NOT urgent
    LIMIT $2
),
urgent AS (
    SELECT instance_id FROM instance
    WHERE batch_id = $1 AND state = 'unsent' AND urgent
    LIMIT $2
),
locked AS (
    SELECT instance.instance_id
    FROM (SELECT instance_id FROM fresh UNION ALL SELECT instance_id FROM urgent) AS found
    JOIN instance ON instance.instance_id = found.instance_id
    WHERE instance.state = 'unsent'
    ORDER BY instance.instance_id
    FOR UPDATE OF instance
)
UPDATE instance SET state = 'cancelled'
FROM locked
WHERE instance.instance_id = locked.instance_id AND instance.state = 'unsent'
RETURNING instance.instance_id, instance.shard;
