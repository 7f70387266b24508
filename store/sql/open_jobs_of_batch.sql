-- Purpose: the open jobs of a batch of which something was sent.
-- Arguments: $1 batch_id, $2 the job_id after which to begin, $3 limit.
-- Result: job_id, job_class_id, copies and tail_copies, by id.
SELECT job_id, job_class_id, copies, tail_copies
FROM job
WHERE batch_id = $1 AND job_id > $2 AND state = 'open'
ORDER BY job_id
LIMIT $3;
