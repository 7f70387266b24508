-- Purpose: count an attempt to compare jobs' outputs before it is made. Until it ends no other process takes the jobs; when the
--   attempt ends with its process, they are taken again a minute later, then 4, 16, ... minutes, at most a day.
-- Arguments: $1 job_ids, sorted, $2 now.
-- Result: job_id, attempts with this one.
UPDATE job_todo SET
    attempts = attempts + 1,
    not_before = $2 + least(86400, 60 * power(4::double precision, least(attempts, 10)))
WHERE job_id = ANY($1::bigint[])
RETURNING job_id, attempts;
