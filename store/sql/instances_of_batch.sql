-- Purpose: instances of a batch in some states, retries first. Those of the history are in finished_instances_of_batch.
-- Arguments: $1 batch_id, $2 states, $3 minus the retries and $4 instance_id behind which to go on (-32768 and 0 for the start),
--   $5 limit.
-- Result: instances by retries (descending) and id. What is neither sent nor urgent has no retries and lies in 64 shards.
SELECT
    instance.instance_id, instance.job_id, instance.state, instance.retries, instance.urgent AND instance.state = 'unsent' AS urgent,
    instance.tight, instance.created_at, instance.host_id, instance.sent_at, instance.due_at, instance.reported_at, instance.reason
FROM (
    SELECT either.instance_id
    FROM (
        SELECT one.instance_id, one.least
        FROM unnest($2::text[]) AS wanted (state)
        CROSS JOIN LATERAL (
            SELECT listed.instance_id, -listed.retries AS least
            FROM instance AS listed
            WHERE listed.batch_id = $1
                AND listed.state = wanted.state
                AND (listed.state <> 'unsent' OR listed.urgent)
                AND listed.retries >= 0
                AND (-listed.retries, listed.instance_id) > ($3::smallint, $4::bigint)
            ORDER BY -listed.retries, listed.instance_id
            LIMIT $5
        ) AS one
        UNION ALL
        SELECT one.instance_id, 0
        FROM generate_series(0, 63) AS place (shard)
        CROSS JOIN LATERAL (
            SELECT fresh.instance_id
            FROM instance AS fresh
            WHERE fresh.batch_id = $1
                AND fresh.shard = place.shard
                AND fresh.state = 'unsent'
                AND NOT fresh.urgent
                AND fresh.instance_id > CASE WHEN $3::smallint < 0 THEN 0 ELSE $4::bigint END
            ORDER BY fresh.instance_id
            LIMIT $5
        ) AS one
        WHERE 'unsent' = ANY($2::text[])
    ) AS either
    ORDER BY either.least, either.instance_id
    LIMIT $5
) AS chosen
JOIN instance ON instance.instance_id = chosen.instance_id
ORDER BY -instance.retries, instance.instance_id;
