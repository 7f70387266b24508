-- name: active_shares
-- Purpose: return the shares of other submitters with recent submissions.
-- Arguments: $1 submitter_id to leave out, $2 instant since which a batch counts.
-- Result: shares, their sum.
SELECT coalesce(sum(shares), 0) AS shares
FROM submitter
WHERE submitter_id <> $1
    AND EXISTS (SELECT FROM batch WHERE batch.submitter_id = submitter.submitter_id AND batch.created_at >= $2);


-- name: add_batch_order
-- Purpose: insert the ordering notes of a new batch; its queue clock starts now.
-- Arguments: $1 batch_id, $2 now.
-- Result: none.
INSERT INTO batch_order (batch_id, waiting_since) VALUES ($1, $2);


-- name: advance_submitter
-- Purpose: advance a submitter's logical time.
-- Arguments: $1 submitter_id, $2 logical_at.
-- Result: none.
UPDATE submitter SET logical_at = $2 WHERE submitter_id = $1;


-- name: batch_created_at
-- Purpose: return when a batch was submitted.
-- Arguments: $1 batch_id.
-- Result: created_at.
SELECT created_at FROM batch WHERE batch_id = $1;


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


-- name: cancel_open_jobs_of_batch
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


-- name: cancel_unsent_of_batch
-- Purpose: cancel some unsent instances of a batch, found by the indexes of waiting instances, in all shards.
-- Arguments: $1 batch_id, $2 how many of each kind.
-- Result: instance_id, shard of each; none is left when there is no row.
WITH fresh AS (
    SELECT instance_id FROM instance
    WHERE batch_id = $1 AND state = 'unsent' AND NOT urgent
    LIMIT $2
),
urgent AS (
    SELECT instance_id FROM instance
    WHERE batch_id = $1 AND state = 'unsent' AND urgent
    LIMIT $2
),
locked AS (
    SELECT instance.instance_id
    FROM (SELECT instance_id FROM fresh UNION ALL SELECT instance_id FROM urgent) AS found
    JOIN instance ON instance.instance_id = found.instance_id
    WHERE instance.state = 'unsent'
    ORDER BY instance.instance_id
    FOR UPDATE OF instance
)
UPDATE instance SET state = 'cancelled'
FROM locked
WHERE instance.instance_id = locked.instance_id AND instance.state = 'unsent'
RETURNING instance.instance_id, instance.shard;


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


-- name: count_active
-- Purpose: return the number of active batches of a submitter, an account, an app and a queue.
-- Arguments: $1 submitter_id, $2 account_id, $3 app_id, $4 queue.
-- Result: one row: submitter, account, app, queue.
SELECT
    count(*) FILTER (WHERE submitter_id = $1) AS submitter,
    count(*) FILTER (WHERE account_id = $2) AS account,
    count(*) FILTER (WHERE app_id = $3) AS app,
    count(*) FILTER (WHERE queue = $4) AS queue
FROM batch
WHERE state = 'active';


-- name: end_batch_as_aborted
-- Purpose: end an active batch; nothing of it is sent from then on.
-- Arguments: $1 batch_id, $2 ended_at.
-- Result: batch_id; no row where it was not active.
UPDATE batch SET state = 'aborted', ended_at = $2 WHERE batch_id = $1 AND state = 'active'
RETURNING batch_id;


-- name: ended_batch_to_correct
-- Purpose: return the data for an ended batch's correction in logical time.
-- Arguments: $1 batch_id.
-- Result: the row of batch_with_counts with refunded_s, what the ordering noted of it (columns noted_*, null where it noted
--   nothing), and what its jobs ask for: the most of its classes, and the mean estimate.
SELECT
    batch_with_counts.*,
    batch.refunded_s,
    true AS explained,
    noted.waited_s AS noted_waited_s,
    noted.waiting_since AS noted_waiting_since,
    noted.bypassed AS noted_bypassed,
    noted.sent AS noted_sent,
    noted.charged AS noted_charged,
    noted.used AS noted_used,
    noted.charged_at AS noted_charged_at,
    noted.used_fraction AS noted_used_fraction,
    noted.sampled AS noted_sampled,
    noted.rate AS noted_rate,
    class.cores, class.memory_bytes, class.disk_bytes, class.job_flop, class.max_errors,
    NULL AS awaited, NULL AS unmet
FROM batch
JOIN batch_with_counts USING (batch_id)
LEFT JOIN batch_order AS noted USING (batch_id)
CROSS JOIN LATERAL (
    SELECT
        max(ncpus) AS cores, max(memory_bytes) AS memory_bytes, max(disk_bytes) AS disk_bytes,
        avg(fpops_est_flop) AS job_flop, min(max_errors) AS max_errors
    FROM job_class
    WHERE job_class.batch_id = $1
) AS class
WHERE batch.batch_id = $1;


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
    failed.instance_id, $1::bigint AS batch_id, failed.job_id, failed.state, failed.host_id, failed.exit_status,
    coalesce(failed.reason, '') AS reason, right(coalesce(failed.stderr, ''), $4) AS stderr, version.platform,
    version.version_num, version.plan_class
FROM failed
JOIN app_version AS version ON version.app_version_id = failed.app_version_id
ORDER BY -failed.retries, failed.instance_id;


-- name: failures_of_version
-- Purpose: return the latest instances of an app version with an error, of all batches. The history is left out.
-- Arguments: $1 app_version_id, $2 since when, $3 number of latest failures of all apps to read, $4 how many characters
--   of standard error, $5 limit.
-- Result: instances with their version and the end of their standard error, the latest first.
WITH failed AS MATERIALIZED (
    SELECT
        instance_id, batch_id, job_id, state, host_id, app_version_id, exit_status, reason,
        coalesce(reported_at, timeout_at) AS at
    FROM instance
    WHERE state IN ('failed', 'invalid', 'timed_out') AND coalesce(reported_at, timeout_at) >= $2
    ORDER BY coalesce(reported_at, timeout_at) DESC, instance_id DESC
    LIMIT $3
)

SELECT
    failed.instance_id, failed.batch_id, failed.job_id, failed.state, failed.host_id, failed.exit_status,
    coalesce(failed.reason, '') AS reason, right(coalesce(told.stderr, ''), $4) AS stderr, version.platform,
    version.version_num, version.plan_class
FROM (SELECT * FROM failed WHERE app_version_id = $1 ORDER BY at DESC, instance_id DESC LIMIT $5) AS failed
JOIN app_version AS version ON version.app_version_id = failed.app_version_id
LEFT JOIN instance_stderr AS told ON told.instance_id = failed.instance_id
ORDER BY failed.at DESC, failed.instance_id DESC;


-- name: finished_jobs_to_copy
-- Purpose: return the next jobs of a batch that are in the history, as they are stored.
-- Arguments: $1 batch_id, $2 job_id after which to look, $3 limit.
-- Result: jobs by id.
SELECT job_id, job_class_id, command_line, inputs, template_id, number
FROM finished_job
WHERE batch_ended_at = (SELECT ended_at FROM batch WHERE batch.batch_id = $1) AND batch_id = $1 AND job_id > $2
ORDER BY job_id
LIMIT $3;


-- name: forget_abort
-- Purpose: record that an abort is finished, unless another process's part of it is not committed yet.
-- Arguments: $1 batch_id.
-- Result: batch_id when it is finished.
DELETE FROM abort_todo
WHERE batch_id = $1
    AND NOT EXISTS (SELECT FROM job WHERE job.batch_id = $1 AND job.state = 'open')
    AND NOT EXISTS (SELECT FROM instance WHERE instance.batch_id = $1 AND instance.state = 'unsent' AND NOT instance.urgent)
    AND NOT EXISTS (SELECT FROM instance WHERE instance.batch_id = $1 AND instance.state = 'unsent' AND instance.urgent)
RETURNING batch_id;


-- name: forget_submission_key
-- Purpose: delete an expired submission key.
-- Arguments: $1 owner, $2 key, $3 before which time.
-- Result: none.
DELETE FROM submission_key WHERE owner = $1 AND key = $2 AND created_at < $3;


-- name: forget_submission_keys
-- Purpose: delete expired submission keys, up to a limit.
-- Arguments: $1 before which time, $2 limit.
-- Result: none.
DELETE FROM submission_key WHERE (owner, key) IN (
    SELECT owner, key FROM submission_key WHERE created_at < $1 ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED
);


-- name: insert_batch
-- Purpose: insert a batch.
-- Arguments: $1 submitter_id, $2 account_id, $3 app_id, $4 name, $5 qos, $6 state, $7 jobs_total, $8 created_at,
--   $9 order_tier, $10 order_key, $11 logical_start_at, $12 logical_end_at, $13 charged_s, $14 batch_flop,
--   $15 deadline_at, $16 user_priority, $17 queue, $18 level, $19 unpaid, $20 job_pe, $21 hold, $22 after_ok,
--   $23 after_any (arrays), $24 quorum_total (null: unknown).
-- Result: batch_id.
INSERT INTO batch (
    submitter_id, account_id, app_id, name, qos, state, jobs_total, created_at, order_tier, order_key, logical_start_at,
    logical_end_at, charged_s, batch_flop, deadline_at, user_priority, queue, level,
    unpaid, job_pe, hold, after_ok, after_any, quorum_total
)
VALUES (
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24
)
RETURNING batch_id;


-- name: insert_job_template
-- Purpose: insert what many jobs of a batch have in common.
-- Arguments: $1 batch_id, $2 command_line, $3 inputs (JSON or null).
-- Result: template_id.
INSERT INTO job_template (batch_id, command_line, inputs) VALUES ($1, $2, $3) RETURNING template_id;


-- name: insert_submission_key
-- Purpose: insert a submission key. Waits for a concurrent transaction that inserts the same key.
-- Arguments: $1 owner, $2 key, $3 said, $4 batch_id, $5 created_at.
-- Result: batch_id; no row when the key is known.
INSERT INTO submission_key (owner, key, said, batch_id, created_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (owner, key) DO NOTHING
RETURNING batch_id;


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


-- name: lock_submitter
-- Purpose: return a submitter's shares and logical time; the row is locked until the transaction ends.
-- Arguments: $1 submitter_id.
-- Result: shares, logical_at; no row when there is none.
SELECT shares, logical_at FROM submitter WHERE submitter_id = $1 FOR NO KEY UPDATE;


-- name: submitter_limits
-- Purpose: return the same without a lock, for a preview.
-- Arguments: $1 submitter_id.
-- Result: shares, logical_at; no row when there is none.
SELECT shares, logical_at FROM submitter WHERE submitter_id = $1;


-- name: note_abort
-- Purpose: record that jobs of a batch are still to be cancelled.
-- Arguments: $1 batch_id.
-- Result: none.
INSERT INTO abort_todo VALUES ($1) ON CONFLICT (batch_id) DO NOTHING;


-- name: note_answer
-- Purpose: store the reply to a submission.
-- Arguments: $1 owner, $2 key, $3 reply (JSON).
-- Result: none.
UPDATE submission_key SET answer = $3::jsonb WHERE owner = $1 AND key = $2;


-- name: outdate_ordering
-- Purpose: discard the ordering pass that another process is computing: it takes a batch for ended.
-- Arguments: none.
-- Result: none.
UPDATE ordering SET serial = serial + 1;


-- name: pool_speed
-- Purpose: return the total speed of recently active hosts, weighted by availability.
-- Arguments: $1 instant since which a call counts.
-- Result: flop_per_s.
SELECT coalesce(sum(ncpus * flop_per_s * on_fraction * active_fraction), 0) AS flop_per_s
FROM host
WHERE last_rpc_at >= $1;


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


-- name: standing_of_leaf
-- Purpose: return the standing of a submitter in an account at the last ordering pass, with the reference host of
--   that pass and the grant charged: the account's own, or its nearest ancestor's.
-- Arguments: $1 submitter_id, $2 account_id.
-- Result: one row: standing and reference (JSON or null), account_id (that of the grant), granted_su, period_start_at,
--   period_s, used_su, reserved_su (null without a grant).
WITH RECURSIVE above AS (
    SELECT account_id, parent_id, 0 AS steps FROM account WHERE account_id = $2
    UNION ALL
    SELECT account.account_id, account.parent_id, above.steps + 1
    FROM above
    JOIN account ON account.account_id = above.parent_id
    WHERE above.steps < 1000
)

SELECT
    usage.standing, ordering.reference, payer.account_id, payer.granted_su, payer.period_start_at, payer.period_s,
    payer.used_su, payer.reserved_su
FROM ordering
LEFT JOIN usage ON usage.submitter_id = $1 AND usage.account_id = $2
LEFT JOIN (
    SELECT account_grant.*
    FROM above
    JOIN account_grant ON account_grant.account_id = above.account_id
    ORDER BY above.steps
    LIMIT 1
) AS payer ON true;


-- name: submitted_before
-- Purpose: return the submission with this key.
-- Arguments: $1 owner, $2 key, $3 since when.
-- Result: what was submitted, its batch, and the reply; no row if there is none.
SELECT said, batch_id, answer FROM submission_key WHERE owner = $1 AND key = $2 AND created_at >= $3;


-- name: take_job_class_ids
-- Purpose: reserve ids for new job classes.
-- Arguments: $1 how many.
-- Result: job_class_id, ascending.
SELECT nextval('job_class_job_class_id_seq') AS job_class_id FROM generate_series(1, $1::int) ORDER BY job_class_id;


-- name: take_job_ids
-- Purpose: reserve ids for new jobs.
-- Arguments: $1 how many.
-- Result: job_id, ascending.
SELECT nextval('job_job_id_seq') AS job_id FROM generate_series(1, $1::int) ORDER BY job_id;


-- name: templates_of_batch
-- Purpose: return what many jobs of a batch have in common.
-- Arguments: $1 batch_id.
-- Result: template_id, command_line, inputs (JSON or null).
SELECT template_id, command_line, inputs FROM job_template WHERE batch_id = $1;


-- name: unfinished_aborts
-- Purpose: return aborted batches that may have jobs still to be cancelled.
-- Arguments: none.
-- Result: batch_id, ended_at; by batch_id.
SELECT batch_id, batch.ended_at
FROM abort_todo
JOIN batch USING (batch_id)
ORDER BY batch_id;


-- name: which_batches
-- Purpose: return those of some batches that exist.
-- Arguments: $1 batch_ids.
-- Result: batch_id, ascending.
SELECT batch_id FROM batch WHERE batch_id = ANY($1::bigint[]) ORDER BY batch_id;
