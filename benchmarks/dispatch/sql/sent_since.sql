-- Purpose: what was sent; reads every instance.
-- Arguments: $1 sent_at from which on.
-- Result: host_id, job_id, instance_id, and 1 for a copy or a retry, else 0; by instance.
SELECT host_id, job_id, instance_id, (copied_because IS NOT NULL OR retries > 0)::int AS is_copy
FROM instance WHERE sent_at >= $1::double precision ORDER BY instance_id;
