-- Purpose: say that something happened to jobs; in key order so that no two transactions wait for each other.
-- Arguments: $1 job_ids, distinct.
-- Result: none.
INSERT INTO job_todo (job_id, serial)
SELECT marked.job_id, nextval('job_todo_serial')
FROM (SELECT unnest($1::bigint[]) AS job_id ORDER BY 1) AS marked
ORDER BY marked.job_id
ON CONFLICT (job_id) DO UPDATE SET serial = excluded.serial, not_before = 0;
