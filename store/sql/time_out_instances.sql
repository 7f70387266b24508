-- Purpose: end instances that are still overdue.
-- Arguments: $1 instance_ids, $2 from_states, $3 to_states, $4 turnaround_samples or nulls (arrays, the instance_ids distinct),
--   $5 now.
-- Result: one row per step made: instance_id, job_id, batch_id, shard, sent_at, due_at, reported_at.
WITH locked AS (
    SELECT step.*
    FROM unnest($1::bigint[], $2::text[], $3::text[], $4::double precision[])
        AS step (instance_id, from_state, to_state, turnaround_sample)
    JOIN instance ON instance.instance_id = step.instance_id
    WHERE instance.timeout_at <= $5
    ORDER BY instance.instance_id
    FOR UPDATE OF instance
)
UPDATE instance SET
    state = step.to_state,
    turnaround_sample = coalesce(step.turnaround_sample, instance.turnaround_sample)
FROM locked AS step
WHERE instance.instance_id = step.instance_id AND instance.state = step.from_state AND instance.timeout_at <= $5
RETURNING
    instance.instance_id, instance.job_id, instance.batch_id, instance.shard, instance.sent_at, instance.due_at,
    instance.reported_at;
