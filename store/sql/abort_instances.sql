-- Purpose: end as aborted what detached hosts lost; the instances are locked and in progress.
-- Arguments: $1 instance_ids.
-- Result: one row per step made: instance_id, job_id, batch_id, shard, sent_at, due_at, host_id,
--   app_version_id.
UPDATE instance SET state = 'aborted', reason = 'the host lost everything it held'
WHERE instance_id = ANY($1::bigint[])
RETURNING instance_id, job_id, batch_id, shard, sent_at, due_at, host_id, app_version_id;
