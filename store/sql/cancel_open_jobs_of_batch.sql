-- Purpose: cancel some open jobs of a batch.
-- Arguments: $1 batch_id, $2 ended_at, $3 job_id after which to look, $4 how many.
-- Result: job_id of each.
WITH locked AS (
    SELECT job_id
    FROM job
    WHERE batch_id = $1 AND job_id > $3 AND state = 'open'
    ORDER BY job_id
    LIMIT $4
    FOR NO KEY UPDATE
)
UPDATE job SET state = 'cancelled', ended_at = $2
FROM locked
WHERE job.job_id = locked.job_id AND job.state = 'open'
RETURNING job.job_id;
