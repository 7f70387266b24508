-- Purpose: lock the marks of jobs until the transaction ends.
-- Arguments: $1 job_ids.
-- Result: job_id and serial, by id.
SELECT job_id, serial FROM job_todo WHERE job_id = ANY($1::bigint[]) ORDER BY job_id FOR UPDATE;
