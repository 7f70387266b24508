-- Purpose: what hosts have in progress.
-- Arguments: none.
-- Result: host_id, batch_id, job_id, instance_id, by host and instance.
SELECT host_id, batch_id, job_id, instance_id
FROM instance
WHERE state = 'in_progress'
ORDER BY host_id, instance_id;
