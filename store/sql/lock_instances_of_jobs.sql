-- Purpose: lock every instance of jobs until the transaction ends.
-- Arguments: $1 job_ids.
-- Result: instance_id, ascending.
SELECT instance_id FROM instance WHERE job_id = ANY($1::bigint[]) ORDER BY instance_id FOR UPDATE;
