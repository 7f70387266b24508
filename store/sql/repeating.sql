-- name: batch_to_retry
-- Purpose: lock a batch, and say whether jobs of it are in the history.
-- Arguments: $1 batch_id.
-- Result: state, in_history; no row when there is no such batch.
SELECT
    batch.state,
    EXISTS (
        SELECT FROM finished_job
        WHERE finished_job.batch_ended_at = batch.ended_at AND finished_job.batch_id = batch.batch_id
    ) AS in_history
FROM batch
WHERE batch.batch_id = $1
FOR NO KEY UPDATE;


-- name: failed_jobs_of_batch
-- Purpose: return the next failed jobs of a batch.
-- Arguments: $1 batch_id, $2 job_id after which to look, $3 limit.
-- Result: job_id, ascending.
SELECT job_id FROM job WHERE batch_id = $1 AND job_id > $2 AND state = 'failed' ORDER BY job_id LIMIT $3;


-- name: lock_ordering
-- Purpose: keep ordering passes from writing until the transaction ends.
-- Arguments: none.
-- Result: one row, to be ignored.
SELECT serial FROM ordering FOR NO KEY UPDATE;


-- name: outdate_ordering
-- Purpose: discard the ordering pass that another process is computing: it takes a batch for ended.
-- Arguments: none.
-- Result: none.
UPDATE ordering SET serial = serial + 1;


-- name: reopen_batch
-- Purpose: make a locked complete batch active again. Its forecasts so far are not scored by its next end.
-- Arguments: $1 batch_id.
-- Result: none.
WITH unscored AS (
    UPDATE forecast SET checkpoint_fraction = NULL WHERE batch_id = $1 AND checkpoint_fraction IS NOT NULL
)
UPDATE batch SET state = 'active', ended_at = NULL WHERE batch_id = $1 AND state = 'complete';


-- name: reopen_jobs
-- Purpose: open locked failed jobs again; their instances so far count towards no limit.
-- Arguments: $1 job_ids.
-- Result: job_id of each.
UPDATE job SET
    state = 'open', failure = NULL, ended_at = NULL,
    retried_after = (
        SELECT coalesce(max(instance.instance_id), 0) FROM instance WHERE instance.job_id = job.job_id
    )
WHERE job_id = ANY($1::bigint[]) AND state = 'failed'
RETURNING job_id;
