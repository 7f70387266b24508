-- Purpose: lock the instances that hosts report, with those that detached hosts lost: in one order, as whoever settles
--   their jobs locks them.
-- Arguments: $1 instance_ids, $2 host_ids (arrays).
-- Result: instance_id, host_id, state and reported_at, ascending.
SELECT instance_id, host_id, state, reported_at
FROM instance
WHERE instance_id = ANY(ARRAY(
    SELECT unnest($1::bigint[])
    UNION ALL
    SELECT instance_id FROM instance WHERE host_id = ANY($2::int[]) AND state = 'in_progress'
))
ORDER BY instance_id
FOR UPDATE;
