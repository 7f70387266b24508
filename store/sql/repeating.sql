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


-- name: class_counts
-- Purpose: return the number of a batch's jobs in each class, in the history too.
-- Arguments: $1 batch_id.
-- Result: job_class_id and jobs, by id.
SELECT job_class_id, count(*) AS jobs
FROM (
    SELECT job_class_id FROM job WHERE batch_id = $1
    UNION ALL
    SELECT job_class_id
    FROM finished_job
    WHERE batch_ended_at = (SELECT ended_at FROM batch WHERE batch.batch_id = $1) AND batch_id = $1
) AS every
GROUP BY job_class_id
ORDER BY job_class_id;


-- name: failed_jobs_of_batch
-- Purpose: return the next failed jobs of a batch.
-- Arguments: $1 batch_id, $2 job_id after which to look, $3 limit.
-- Result: job_id, ascending.
SELECT job_id FROM job WHERE batch_id = $1 AND job_id > $2 AND state = 'failed' ORDER BY job_id LIMIT $3;


-- name: failures_of_batch
-- Purpose: return instances of a batch with an error, in the history too: retries first, a limited number per state.
-- Arguments: $1 batch_id, $2 states, $3 limit per state, $4 how many characters of standard error.
-- Result: instances with their versions and the end of their standard error, retries first.
WITH failed AS (
    SELECT one.*
    FROM unnest($2::text[]) AS wanted (state)
    CROSS JOIN LATERAL (
        SELECT
            listed.instance_id, listed.job_id, listed.state, listed.retries, listed.host_id, listed.app_version_id,
            listed.exit_status, listed.reason,
            (SELECT stderr FROM instance_stderr WHERE instance_stderr.instance_id = listed.instance_id) AS stderr
        FROM instance AS listed
        WHERE listed.batch_id = $1
            AND listed.state = wanted.state
            AND (listed.state <> 'unsent' OR listed.urgent)
            AND listed.retries >= 0
        ORDER BY -listed.retries, listed.instance_id
        LIMIT $3
    ) AS one
    UNION ALL
    SELECT one.*
    FROM unnest($2::text[]) AS wanted (state)
    CROSS JOIN LATERAL (
        SELECT instance_id, job_id, moved.state, retries, host_id, app_version_id, exit_status, reason, stderr
        FROM finished_instance AS moved
        WHERE moved.batch_ended_at = (SELECT ended_at FROM batch WHERE batch.batch_id = $1)
            AND moved.batch_id = $1
            AND moved.state = wanted.state
        ORDER BY -retries, instance_id
        LIMIT $3
    ) AS one
)

SELECT
    failed.instance_id, failed.job_id, failed.state, failed.host_id, failed.exit_status,
    coalesce(failed.reason, '') AS reason, right(coalesce(failed.stderr, ''), $4) AS stderr, version.platform,
    version.version_num, version.plan_class
FROM failed
JOIN app_version AS version ON version.app_version_id = failed.app_version_id
ORDER BY -failed.retries, failed.instance_id;


-- name: finished_jobs_to_copy
-- Purpose: return the next jobs of a batch that are in the history, as they are stored.
-- Arguments: $1 batch_id, $2 job_id after which to look, $3 limit.
-- Result: jobs by id.
SELECT job_id, job_class_id, command_line, inputs, template_id, number
FROM finished_job
WHERE batch_ended_at = (SELECT ended_at FROM batch WHERE batch.batch_id = $1) AND batch_id = $1 AND job_id > $2
ORDER BY job_id
LIMIT $3;


-- name: jobs_to_copy
-- Purpose: return the next jobs of a batch, as they are stored.
-- Arguments: $1 batch_id, $2 job_id after which to look, $3 limit.
-- Result: jobs by id.
SELECT job_id, job_class_id, command_line, inputs, template_id, number
FROM job
WHERE batch_id = $1 AND job_id > $2
ORDER BY job_id
LIMIT $3;


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


-- name: templates_of_batch
-- Purpose: return what many jobs of a batch have in common.
-- Arguments: $1 batch_id.
-- Result: template_id, command_line, inputs (JSON or null).
SELECT template_id, command_line, inputs FROM job_template WHERE batch_id = $1;
