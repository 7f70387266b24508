-- Purpose: take locked instances a step further, each only from the state it is thought to be in.
-- Arguments: $1 instance_ids, $2 from_states, $3 to_states, $4 turnaround_samples or nulls, $5 reasons or nulls
--   (arrays, the instance_ids distinct).
-- Result: one row per step made: instance_id, job_id, batch_id, shard, sent_at, due_at, reported_at.
UPDATE instance SET
    state = step.to_state,
    turnaround_sample = coalesce(step.turnaround_sample, instance.turnaround_sample),
    reason = coalesce(step.reason, instance.reason)
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::double precision[], $5::text[])
    AS step (instance_id, from_state, to_state, turnaround_sample, reason)
WHERE instance.instance_id = step.instance_id AND instance.state = step.from_state
RETURNING
    instance.instance_id, instance.job_id, instance.batch_id, instance.shard, instance.sent_at, instance.due_at,
    instance.reported_at;
