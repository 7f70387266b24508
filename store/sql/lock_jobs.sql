-- Purpose: lock jobs until the transaction ends.
-- Arguments: $1 job_ids.
-- Result: job_id, batch_id, job_class_id and state, by id.
SELECT job_id, batch_id, job_class_id, state
FROM job
WHERE job_id = ANY($1::bigint[])
ORDER BY job_id
FOR NO KEY UPDATE;
