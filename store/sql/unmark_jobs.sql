-- Purpose: take the marks off jobs that were settled; they are locked.
-- Arguments: $1 job_ids.
-- Result: none.
DELETE FROM job_todo WHERE job_id = ANY($1::bigint[]);
