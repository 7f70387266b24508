-- name: add_finished_month
-- Purpose: make the partitions of a month of the history unless they are there.
-- Arguments: $1 month, $2 starts_at, $3 ends_at.
-- Result: one row without meaning.
SELECT add_finished_month($1, $2, $3);


-- name: count_finished
-- Purpose: add to what there is of a month of the history.
-- Arguments: $1 month, $2 jobs, $3 instances, $4 files, $5 file_bytes.
-- Result: none.
UPDATE finished_month SET
    jobs = jobs + $2,
    instances = instances + $3,
    files = files + $4,
    file_bytes = file_bytes + $5
WHERE month = $1;


-- name: drop_finished_month
-- Purpose: drop the partitions of a month of the history.
-- Arguments: $1 month, $2 dropped_at.
-- Result: one row without meaning.
SELECT drop_finished_month($1, $2);


-- name: ended_jobs
-- Purpose: the next jobs of a batch that ended long ago. Walks over the batches that have jobs here, one probe each, so
--   that it costs as little after ten years of batches as after one; stops at the first that ended long ago.
-- Arguments: $1 until when a batch must have ended, $2 batch_id and $3 job_id behind which to look, $4 limit.
-- Result: batch_id, batch_ended_at and job_id, ascending; all of one batch.
WITH RECURSIVE walked AS (
    SELECT $2::bigint AS batch_id, $3::bigint AS job_id, false AS ended, NULL::double precision AS batch_ended_at
    UNION ALL
    SELECT next.batch_id, 9223372036854775807, next.ended, next.ended_at
    FROM walked
    CROSS JOIN LATERAL (
        SELECT first.batch_id, batch.state <> 'active' AND batch.ended_at <= $1 AS ended, batch.ended_at
        FROM (
            SELECT job.batch_id
            FROM job
            WHERE (job.batch_id, job.job_id) > (walked.batch_id, walked.job_id)
            ORDER BY job.batch_id, job.job_id
            LIMIT 1
        ) AS first
        JOIN batch ON batch.batch_id = first.batch_id
    ) AS next
    WHERE NOT walked.ended
)
SELECT job.batch_id, walked.batch_ended_at, job.job_id
FROM walked
JOIN job ON job.batch_id = walked.batch_id
WHERE walked.ended AND (job.batch_id, job.job_id) > ($2, $3)
ORDER BY job.job_id
LIMIT $4;


-- name: finish_instances
-- Purpose: move every instance of some locked jobs of one batch to the history, with its standard error and its uploads.
-- Arguments: $1 job_ids, $2 batch_ended_at.
-- Result: instances, files and file_bytes that were moved.
WITH gone AS (
    DELETE FROM instance WHERE job_id = ANY($1::bigint[]) RETURNING *
),
gone_stderr AS (
    DELETE FROM instance_stderr WHERE instance_id IN (SELECT instance_id FROM gone)
),
gone_upload AS (
    DELETE FROM upload WHERE instance_id IN (SELECT instance_id FROM gone) RETURNING nbytes
),
moved AS (
    INSERT INTO finished_instance (
        instance_id, job_id, batch_id, job_class_id, state, retries, tight, created_at, host_id, volunteer_id,
        app_version_id, sent_at, due_at, timeout_at, est_runtime_s, because, reported_at, elapsed_s, cpu_s, exit_status,
        reason, turnaround_sample, copied_because, stderr, uploads, batch_ended_at
    )
    SELECT
        instance_id, job_id, batch_id, job_class_id, state, retries, tight, created_at, host_id, volunteer_id,
        app_version_id, sent_at, due_at, timeout_at, est_runtime_s, because, reported_at, elapsed_s, cpu_s, exit_status,
        reason, turnaround_sample, copied_because,
        -- both tables as they were before the deletes
        (SELECT stderr FROM instance_stderr WHERE instance_stderr.instance_id = gone.instance_id),
        (
            SELECT jsonb_agg(
                jsonb_build_object('name', name, 'nbytes', nbytes, 'md5', md5, 'completed_at', completed_at) ORDER BY name
            )
            FROM upload
            WHERE upload.instance_id = gone.instance_id
        ),
        $2
    FROM gone
    ORDER BY instance_id
)
SELECT
    (SELECT count(*) FROM gone) AS instances,
    count(*) AS files,
    coalesce(sum(nbytes), 0)::bigint AS file_bytes
FROM gone_upload;


-- name: finish_jobs
-- Purpose: move some locked jobs of one batch to the history.
-- Arguments: $1 job_ids, $2 batch_ended_at.
-- Result: none.
WITH gone AS (
    DELETE FROM job WHERE job_id = ANY($1::bigint[]) RETURNING *
)
INSERT INTO finished_job (
    job_id, batch_id, job_class_id, state, command_line, inputs, copies, hr_class, canonical_instance_id,
    failure, ended_at, batch_ended_at, template_id, number
)
SELECT
    job_id, batch_id, job_class_id, state, command_line, inputs, copies, hr_class, canonical_instance_id,
    failure, ended_at, $2, template_id, number
FROM gone
ORDER BY job_id;


-- name: finished_months
-- Purpose: what there is of each month of the history, and on which a purge was ever made.
-- Arguments: none.
-- Result: month, jobs, instances, files, file_bytes, table_bytes and purged_at, by month.
SELECT
    month, jobs, instances, files, file_bytes, purged_at,
    (
        coalesce(pg_total_relation_size(to_regclass('finished_job_' || replace(month, '-', '_'))), 0)
        + coalesce(pg_total_relation_size(to_regclass('finished_instance_' || replace(month, '-', '_'))), 0)
    ) AS table_bytes
FROM finished_month
ORDER BY month;


-- name: finished_outputs
-- Purpose: the uploaded outputs of instances of a month of the history.
-- Arguments: $1 month, $2 instance_id behind which to look, $3 how many instances.
-- Result: instance_id and name of each output, ascending; name null for an instance without any.
SELECT instance.instance_id, output.file ->> 'name' AS name
FROM (
    SELECT instance_id, uploads
    FROM finished_instance
    WHERE batch_ended_at >= (SELECT starts_at FROM finished_month WHERE month = $1)
        AND batch_ended_at < (SELECT ends_at FROM finished_month WHERE month = $1)
        AND instance_id > $2
    ORDER BY instance_id
    LIMIT $3
) AS instance
LEFT JOIN LATERAL jsonb_array_elements(instance.uploads) AS output (file) ON true
ORDER BY instance.instance_id, name;


-- name: lock_history
-- Purpose: let nobody else move jobs to the history or purge months of it until the transaction ends.
-- Arguments: none.
-- Result: one row without meaning.
SELECT pg_advisory_xact_lock(1297437780, hashtext('history of jobs'));


-- name: movable_jobs
-- Purpose: those of some locked jobs that nothing more will happen to: they are over and unmarked, no instance of them is
--   waiting or under way, and every due date has passed and was counted.
-- Arguments: $1 job_ids, $2 until when a due date must have passed, $3 name of the duty that counts due dates.
-- Result: job_id, ascending.
SELECT job.job_id
FROM job
WHERE job.job_id = ANY($1::bigint[])
    AND job.state <> 'open'
    AND NOT EXISTS (SELECT FROM job_todo WHERE job_todo.job_id = job.job_id)
    AND NOT EXISTS (
        SELECT FROM instance
        WHERE instance.job_id = job.job_id
            AND (
                instance.state IN ('unsent', 'in_progress')
                OR instance.due_at > least($2, coalesce((SELECT done_at FROM duty WHERE name = $3), 0))
            )
    )
ORDER BY job.job_id;


-- name: purge_forecasts
-- Purpose: remove the forecasts of batches that ended in a month; their scores stay.
-- Arguments: $1 month.
-- Result: none.
DELETE FROM forecast
USING batch, finished_month
WHERE finished_month.month = $1
    AND batch.ended_at >= finished_month.starts_at AND batch.ended_at < finished_month.ends_at
    AND forecast.batch_id = batch.batch_id;
