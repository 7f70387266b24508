-- Purpose: ids for new jobs.
-- Arguments: $1 how many.
-- Result: job_id, ascending.
SELECT nextval('job_job_id_seq') AS job_id FROM generate_series(1, $1::int) ORDER BY job_id;
