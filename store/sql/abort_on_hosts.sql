-- Purpose: end as aborted whatever hosts have in progress: they lost it.
-- Arguments: $1 host_ids.
-- Result: one row per step made: instance_id, job_id, batch_id, shard, sent_at, due_at.
WITH locked AS (
    SELECT instance_id
    FROM instance
    WHERE host_id = ANY($1::int[]) AND state = 'in_progress'
    ORDER BY instance_id
    FOR UPDATE
)
UPDATE instance SET state = 'aborted', reason = 'the host lost everything it held'
FROM locked
WHERE instance.instance_id = locked.instance_id AND instance.state = 'in_progress'
RETURNING
    instance.instance_id, instance.job_id, instance.batch_id, instance.shard, instance.sent_at, instance.due_at;
