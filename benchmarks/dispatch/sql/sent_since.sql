-- Purpose: what was sent; reads every instance.
-- Arguments: $1 sent_at from which on.
-- Result: instance_id, job_id, host_id, by instance.
SELECT instance_id, job_id, host_id FROM instance WHERE sent_at >= $1::double precision ORDER BY instance_id;
