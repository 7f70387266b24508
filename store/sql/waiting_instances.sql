-- Purpose: unsent instances of a batch, urgent ones first.
-- Arguments: $1 batch_id, $2 limit.
-- Result: instances: urgent ones by retries (descending) and id, then the others by shard and id.
SELECT instance_id, job_id, retries, urgent, created_at
FROM (
    (
        SELECT 0 AS kind, instance_id, job_id, retries, urgent, created_at, shard
        FROM instance
        WHERE batch_id = $1 AND state = 'unsent' AND urgent
        ORDER BY retries DESC, instance_id
        LIMIT $2
    )
    UNION ALL
    (
        SELECT 1, instance_id, job_id, retries, urgent, created_at, shard
        FROM instance
        WHERE batch_id = $1 AND state = 'unsent' AND NOT urgent
        ORDER BY shard, instance_id
        LIMIT $2
    )
) AS waiting
ORDER BY kind, CASE kind WHEN 0 THEN -retries ELSE shard END, instance_id
LIMIT $2;
