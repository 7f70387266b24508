-- name: count_due
-- Purpose: add to n_due of hosts' app versions the instances that fell due, or subtract those counted by a clock that
--   was ahead.
-- Arguments: $1 since (excluded), $2 until (included), $3 1 to add them, -1 to take them off: not below 0.
-- Result: counted, the number of instances.
WITH due AS (
    SELECT host_id, app_version_id, count(*) AS count
    FROM instance
    WHERE due_at > $1 AND due_at <= $2
    GROUP BY host_id, app_version_id
),
locked AS (
    SELECT hav.host_id, hav.app_version_id, due.count
    FROM host_app_version AS hav
    JOIN due USING (host_id, app_version_id)
    ORDER BY hav.host_id, hav.app_version_id
    FOR NO KEY UPDATE OF hav
),
changed AS (
    UPDATE host_app_version SET n_due = greatest(0, host_app_version.n_due + $3::int * locked.count)
    FROM locked
    WHERE host_app_version.host_id = locked.host_id AND host_app_version.app_version_id = locked.app_version_id
)
SELECT coalesce(sum(count), 0)::bigint AS counted FROM due;


-- name: insert_outage
-- Purpose: record an outage, whose due dates are shifted afterwards.
-- Arguments: $1 alive_until, $2 ended_at.
-- Result: none.
INSERT INTO outage (alive_until, ended_at) VALUES ($1, $2);


-- name: lock_duty
-- Purpose: return when a periodic task was last done; the row is locked until the transaction ends.
-- Arguments: $1 name.
-- Result: done_at; no row before the first time.
SELECT done_at FROM duty WHERE name = $1 FOR UPDATE;


-- name: mark_jobs
-- Purpose: mark jobs as changed; in key order so that no two transactions wait for each other.
-- Arguments: $1 job_ids, distinct.
-- Result: none.
INSERT INTO job_todo (job_id, serial)
SELECT marked.job_id, nextval('job_todo_serial')
FROM (SELECT unnest($1::bigint[]) AS job_id ORDER BY 1) AS marked
ORDER BY marked.job_id
ON CONFLICT (job_id) DO UPDATE SET serial = excluded.serial, not_before = 0;


-- name: move_open_deadlines
-- Purpose: shift the next due dates affected by an outage: of instances in progress that were sent before it and not
--   overdue when it began. They are taken by timeout_at descending: shifted ones lie behind and are not read again.
--   If a due date was already counted and is now in the future, it is subtracted from n_due.
-- Arguments: $1 by_s, $2 alive_until, $3 until when due dates were counted, $4 timeout_at and $5 instance_id of the last one
--   read, $6 limit.
-- Result: moved, looked_at (how many), timeout_at and instance_id of the last one read (null if there was none).
WITH looked_at AS (
    SELECT instance_id, timeout_at
    FROM instance
    WHERE state = 'in_progress' AND timeout_at > $2 AND (timeout_at, instance_id) < ($4, $5::bigint) AND sent_at <= $2
    ORDER BY timeout_at DESC, instance_id DESC
    LIMIT $6
),
locked AS (
    SELECT instance.instance_id, instance.state, instance.due_at
    FROM looked_at
    JOIN instance ON instance.instance_id = looked_at.instance_id
    ORDER BY instance.instance_id
    FOR UPDATE OF instance
),
moved AS (
    UPDATE instance SET due_at = instance.due_at + $1, timeout_at = instance.timeout_at + $1
    FROM locked
    WHERE instance.instance_id = locked.instance_id AND locked.state = 'in_progress'
    RETURNING instance.host_id, instance.app_version_id, locked.due_at AS before_at, instance.due_at
),
ahead AS (
    SELECT host_id, app_version_id, count(*) AS count
    FROM moved
    WHERE before_at <= $3 AND due_at > $3
    GROUP BY host_id, app_version_id
),
locked_statistics AS (
    SELECT hav.host_id, hav.app_version_id, ahead.count
    FROM host_app_version AS hav
    JOIN ahead USING (host_id, app_version_id)
    ORDER BY hav.host_id, hav.app_version_id
    FOR NO KEY UPDATE OF hav
),
lowered AS (
    UPDATE host_app_version SET n_due = greatest(0, host_app_version.n_due - locked.count)
    FROM locked_statistics AS locked
    WHERE host_app_version.host_id = locked.host_id AND host_app_version.app_version_id = locked.app_version_id
)
SELECT
    (SELECT count(*) FROM moved) AS moved,
    (SELECT count(*) FROM looked_at) AS looked_at,
    last.timeout_at,
    last.instance_id
FROM (SELECT) AS always
LEFT JOIN (SELECT timeout_at, instance_id FROM looked_at ORDER BY timeout_at, instance_id LIMIT 1) AS last ON true;


-- name: note_duty
-- Purpose: record that a periodic task was done.
-- Arguments: $1 name, $2 done_at.
-- Result: none.
INSERT INTO duty (name, done_at) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE SET done_at = greatest(duty.done_at, excluded.done_at);


-- name: note_outage
-- Purpose: store the progress of an outage's shift.
-- Arguments: $1 outage_id, $2 moved (added), $3 moved_down_to or null (leave), $4 moved_down_to_id or null (leave), $5 over.
-- Result: none.
UPDATE outage SET
    moved = moved + $2::bigint,
    moved_down_to = coalesce($3, moved_down_to),
    moved_down_to_id = coalesce($4, moved_down_to_id),
    over = $5
WHERE outage_id = $1;


-- name: open_outages
-- Purpose: return the first two unfinished outages; locked until the transaction ends.
-- Arguments: none.
-- Result: outages by outage_id.
SELECT outage_id, alive_until, ended_at, moved_down_to, moved_down_to_id
FROM outage
WHERE NOT over
ORDER BY outage_id
LIMIT 2
FOR UPDATE;


-- name: overdue_instances
-- Purpose: return instances past their due date and grace period without a report.
-- Arguments: $1 now, $2 limit.
-- Result: held instances with fpops_est_flop, earliest timeout_at first.
SELECT
    instance.instance_id, instance.job_id, instance.batch_id, instance.job_class_id, instance.app_version_id,
    instance.host_id, instance.volunteer_id, instance.sent_at, instance.due_at, instance.est_runtime_s, instance.tight,
    instance.gated,
    app.name AS app_name, job.state <> 'open' AS no_longer_needed,
    coalesce(batch.median_turnaround_s, app.turnaround_s_per_flop * job_class.fpops_est_flop) AS median_turnaround_s,
    job_class.fpops_est_flop, job_class.ncpus
FROM (
    SELECT *
    FROM instance
    WHERE state = 'in_progress' AND timeout_at <= $1
    ORDER BY timeout_at, instance_id
    LIMIT $2
) AS instance
JOIN job ON job.job_id = instance.job_id
JOIN job_class ON job_class.job_class_id = instance.job_class_id
JOIN batch ON batch.batch_id = instance.batch_id
JOIN app ON app.app_id = batch.app_id
ORDER BY instance.timeout_at, instance.instance_id;


-- name: set_duty_back
-- Purpose: set back the time of a periodic task that was recorded with a clock that was ahead.
-- Arguments: $1 name, $2 done_at.
-- Result: none.
UPDATE duty SET done_at = $2 WHERE name = $1;


-- name: time_out_instances
-- Purpose: end instances that are still overdue.
-- Arguments: $1 instance_ids, $2 from_states, $3 to_states, $4 turnaround_samples or nulls (arrays, the instance_ids distinct),
--   $5 now.
-- Result: one row per step made: instance_id, job_id, batch_id, shard, sent_at, due_at, reported_at.
WITH locked AS (
    SELECT step.*
    FROM unnest($1::bigint[], $2::text[], $3::text[], $4::double precision[])
        AS step (instance_id, from_state, to_state, turnaround_sample)
    JOIN instance ON instance.instance_id = step.instance_id
    WHERE instance.timeout_at <= $5
    ORDER BY instance.instance_id
    FOR UPDATE OF instance
)
UPDATE instance SET
    state = step.to_state,
    turnaround_sample = coalesce(step.turnaround_sample, instance.turnaround_sample)
FROM locked AS step
WHERE instance.instance_id = step.instance_id AND instance.state = step.from_state AND instance.timeout_at <= $5
RETURNING
    instance.instance_id, instance.job_id, instance.batch_id, instance.shard, instance.sent_at, instance.due_at,
    instance.reported_at;

-- name: add_finished_month
-- Purpose: create the partitions of a month of the history if they do not exist.
-- Arguments: $1 month, $2 starts_at, $3 ends_at.
-- Result: one row, to be ignored.
SELECT add_finished_month($1, $2, $3);


-- name: count_finished
-- Purpose: add to the totals of a month of the history.
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
-- Result: one row, to be ignored.
SELECT drop_finished_month($1, $2);


-- name: ended_jobs
-- Purpose: return the next jobs of a batch that ended long ago. Walks over the batches that still have jobs here, one
--   probe each, so that the cost does not grow with the number of old batches; stops at the first that ended long
--   ago.
-- Arguments: $1 until when a batch must have ended, $2 batch_id and $3 job_id after which to start, $4 limit.
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
        app_version_id, sent_at, due_at, timeout_at, est_runtime_s, due_terms, reported_at, elapsed_s, cpu_s, exit_status,
        reason, turnaround_sample, copied_because, credit, stderr, uploads, batch_ended_at
    )
    SELECT
        instance_id, job_id, batch_id, job_class_id, state, retries, tight, created_at, host_id, volunteer_id,
        app_version_id, sent_at, due_at, timeout_at, est_runtime_s, due_terms, reported_at, elapsed_s, cpu_s, exit_status,
        reason, turnaround_sample, copied_because, credit,
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
-- Purpose: return the totals of each month of the history, and its last purge.
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
-- Purpose: return the uploaded outputs of instances of a month of the history.
-- Arguments: $1 month, $2 instance_id after which to start, $3 how many instances.
-- Result: instance_id, name, nbytes and md5 of each output, ascending; name null for an instance without any.
SELECT
    instance.instance_id, output.file ->> 'name' AS name, (output.file ->> 'nbytes')::bigint AS nbytes,
    output.file ->> 'md5' AS md5
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
-- Purpose: keep other processes from moving jobs to the history or purging months of it until the transaction ends.
-- Arguments: none.
-- Result: one row, to be ignored.
SELECT pg_advisory_xact_lock(1297437780, hashtext('history of jobs'));


-- name: movable_jobs
-- Purpose: return those of some locked jobs that can no longer change: ended and unmarked, with no instance unsent or
--   in progress, and every due date passed and counted.
-- Arguments: $1 job_ids, $2 until when a due date must have passed, $3 name of the task that counts due dates.
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
-- Purpose: delete the forecasts of batches that ended in a month; their scores stay.
-- Arguments: $1 month.
-- Result: none.
DELETE FROM forecast
USING batch, finished_month
WHERE finished_month.month = $1
    AND batch.ended_at >= finished_month.starts_at AND batch.ended_at < finished_month.ends_at
    AND forecast.batch_id = batch.batch_id;
