-- Purpose: ids for new job classes.
-- Arguments: $1 how many.
-- Result: job_class_id, ascending.
SELECT nextval('job_class_job_class_id_seq') AS job_class_id FROM generate_series(1, $1::int) ORDER BY job_class_id;
