-- name: advance_sequences
-- Purpose: advance every id sequence, so that no id assigned after a backup is assigned again.
-- Arguments: $1 ids of bigint sequences begin behind this one, $2 step of bigint sequences, $3 step of int sequences.
-- Result: name, next (the last id that counts as used); by name. An error if an int sequence has no room left.
SELECT
    sequencename AS name,
    setval(
        format('%I.%I', schemaname, sequencename)::regclass,
        CASE data_type::text
            WHEN 'bigint' THEN greatest(coalesce(last_value, start_value), $1::bigint) + $2::bigint
            ELSE coalesce(last_value, start_value) + $3::bigint
        END
    ) AS next
FROM pg_sequences
WHERE schemaname = current_schema()
ORDER BY sequencename;


-- name: check_batches
-- Purpose: find batches with missing or extra jobs, ended ones with open jobs, active ones without, and failed jobs
--   without a reason; batches with a purged month are left out. Reads every job, including the history.
-- Arguments: $1 limit.
-- Result: thing, because; by batch.
WITH every_job AS (
    SELECT batch_id, state, failure FROM job
    UNION ALL
    SELECT batch_id, state, failure FROM finished_job
),
of_batch AS (
    SELECT
        batch_id, count(*) AS jobs,
        count(*) FILTER (WHERE state = 'open') AS open,
        count(*) FILTER (WHERE state = 'cancelled') AS cancelled,
        count(*) FILTER (WHERE state = 'failed' AND coalesce(btrim(failure), '') = '') AS unexplained
    FROM every_job
    GROUP BY batch_id
)
SELECT
    'batch ' || batch.batch_id AS thing,
    CASE
        WHEN coalesce(jobs, 0) <> jobs_total THEN format('it has %s jobs of %s', coalesce(jobs, 0), jobs_total)
        WHEN batch.state = 'complete' AND open > 0 THEN format('it is complete, and %s of its jobs are open', open)
        WHEN batch.state = 'complete' AND cancelled > 0 THEN format('it is complete, and %s jobs were cancelled', cancelled)
        WHEN batch.state = 'active' AND open = 0 THEN 'it is active, and none of its jobs is open'
        ELSE format('%s jobs of it failed without a reason', unexplained)
    END AS because
FROM batch
LEFT JOIN of_batch USING (batch_id)
WHERE (
        coalesce(jobs, 0) <> jobs_total
        OR (batch.state = 'complete' AND open + cancelled > 0)
        OR (batch.state = 'active' AND open = 0)
        OR unexplained > 0
    )
    AND NOT EXISTS (
        SELECT
        FROM finished_month
        WHERE batch.ended_at >= finished_month.starts_at AND batch.ended_at < finished_month.ends_at
            AND finished_month.purged_at IS NOT NULL
    )
ORDER BY batch.batch_id
LIMIT $1;


-- name: check_credit
-- Purpose: find hosts and volunteers whose credit differs from the sum over their results, and teams with less than
--   their members earned since they joined. Once a month of the history is purged, only too little is found. Credit of
--   deleted hosts is ignored. Reads every instance, including the history.
-- Arguments: $1 limit.
-- Result: thing, because; by kind and id.
WITH every_result AS (
    SELECT host_id, volunteer_id, credit, reported_at FROM instance WHERE credit IS NOT NULL
    UNION ALL
    SELECT host_id, volunteer_id, credit, reported_at FROM finished_instance WHERE credit IS NOT NULL
),
granted AS MATERIALIZED (
    SELECT
        every_result.host_id, every_result.volunteer_id, participation.team_id, sum(credit) AS credit,
        sum(credit) FILTER (WHERE reported_at >= participation.joined_at) AS in_team
    FROM every_result
    LEFT JOIN participation ON participation.volunteer_id = every_result.volunteer_id
    GROUP BY every_result.host_id, every_result.volunteer_id, participation.team_id
),
recounted AS (
    SELECT 'host' AS kind, host.host_id AS id, sum(credit) AS total
    FROM granted
    JOIN host ON host.host_id = granted.host_id
    GROUP BY host.host_id
    UNION ALL
    SELECT 'volunteer', volunteer_id, sum(credit) FROM granted GROUP BY volunteer_id
    UNION ALL
    SELECT 'team', team_id, sum(in_team) FROM granted WHERE in_team IS NOT NULL GROUP BY team_id
),
compared AS (
    SELECT
        kind, id, coalesce(credit.total, 0) AS total, coalesce(recounted.total, 0) AS expected,
        kind = 'team' OR EXISTS (SELECT FROM finished_month WHERE purged_at IS NOT NULL) AS may_have_more
    FROM credit
    FULL JOIN recounted USING (kind, id)
)
SELECT
    kind || ' ' || id AS thing,
    format(
        'its credit is %s, and its results earned %s%s', round(total::numeric, 3), CASE WHEN may_have_more THEN 'at least ' END,
        round(expected::numeric, 3)
    ) AS because
FROM compared
WHERE abs(total - expected) > 1e-6 * (1 + expected)  -- sums in another order differ slightly
    AND (total < expected OR NOT may_have_more)
ORDER BY kind, id
LIMIT $1;


-- name: check_doubled
-- Purpose: find duplicates: jobs and instances both in the busy tables and in the history, canonical instances of two
--   jobs, hosts with two instances of a job in progress, which no app setting allows. Reads every job and instance,
--   including the history.
-- Arguments: $1 limit.
-- Result: thing, because.
WITH every_instance AS (
    SELECT instance_id FROM instance
    UNION ALL
    SELECT instance_id FROM finished_instance
),
every_job AS (
    SELECT job_id, canonical_instance_id FROM job
    UNION ALL
    SELECT job_id, canonical_instance_id FROM finished_job
)
SELECT thing, because
FROM (
    SELECT 'job ' || job_id AS thing, 'it exists ' || count(*) || ' times' AS because
    FROM every_job
    GROUP BY job_id
    HAVING count(*) > 1
    UNION ALL
    SELECT 'instance ' || instance_id, 'it exists ' || count(*) || ' times'
    FROM every_instance
    GROUP BY instance_id
    HAVING count(*) > 1
    UNION ALL
    SELECT 'instance ' || canonical_instance_id, count(*) || ' jobs are valid by it'
    FROM every_job
    WHERE canonical_instance_id IS NOT NULL
    GROUP BY canonical_instance_id
    HAVING count(DISTINCT job_id) > 1
    UNION ALL
    SELECT 'job ' || job_id, 'host ' || host_id || ' has it in progress ' || count(*) || ' times'
    FROM instance
    WHERE state = 'in_progress'
    GROUP BY job_id, host_id
    HAVING count(*) > 1
) AS doubled
ORDER BY thing
LIMIT $1;


-- name: check_ended_jobs
-- Purpose: find ended jobs that contradict their instances: no valid canonical instance, a valid one beside another
--   outcome, or unsent instances. Reads every job and instance, including the history.
-- Arguments: $1 limit.
-- Result: thing, because; by job.
WITH every_instance AS (
    SELECT instance_id, job_id, state FROM instance
    UNION ALL
    SELECT instance_id, job_id, state FROM finished_instance
),
ended AS (
    SELECT job_id, state, canonical_instance_id FROM job WHERE state <> 'open'
    UNION ALL
    SELECT job_id, state, canonical_instance_id FROM finished_job
),
compared AS (
    SELECT
        ended.job_id, ended.state, ended.canonical_instance_id,
        count(*) FILTER (WHERE every_instance.state = 'valid') AS valid,
        count(*) FILTER (WHERE every_instance.state = 'unsent') AS unsent,
        coalesce(bool_or(every_instance.state = 'valid' AND every_instance.instance_id = ended.canonical_instance_id), false)
            AS has_canonical
    FROM ended
    LEFT JOIN every_instance USING (job_id)
    GROUP BY ended.job_id, ended.state, ended.canonical_instance_id
)
SELECT
    'job ' || job_id AS thing,
    CASE
        WHEN state = 'valid' AND NOT has_canonical
            THEN format('it is valid by instance %s, which is not one of its valid instances', canonical_instance_id)
        WHEN state <> 'valid' AND valid > 0 THEN format('it is %s and has %s valid instances', state, valid)
        ELSE format('it is %s and %s of its instances are unsent', state, unsent)
    END AS because
FROM compared
WHERE (state = 'valid' AND NOT has_canonical) OR (state <> 'valid' AND valid > 0) OR unsent > 0
ORDER BY job_id
LIMIT $1;


-- name: check_files_known
-- Purpose: return the records of files in the upload folder.
-- Arguments: $1 names, $2 instance_ids their names end in (arrays).
-- Result: name, state (of the instance; null: there is none), nbytes and md5 (null: it was not recorded),
--   reported_success (its host reported the instance with exit status 0).
SELECT
    file.name, coalesce(instance.state, finished_instance.state) AS state,
    coalesce(upload.nbytes, (output.file ->> 'nbytes')::bigint) AS nbytes,
    coalesce(upload.md5, output.file ->> 'md5') AS md5,
    coalesce(coalesce(instance.reported_at, finished_instance.reported_at) IS NOT NULL
        AND coalesce(instance.exit_status, finished_instance.exit_status) = 0, false) AS reported_success
FROM unnest($1::text[], $2::bigint[]) AS file (name, instance_id)
LEFT JOIN instance ON instance.instance_id = file.instance_id
LEFT JOIN upload ON upload.instance_id = file.instance_id AND upload.name = file.name
LEFT JOIN finished_instance ON finished_instance.instance_id = file.instance_id
LEFT JOIN LATERAL (
    SELECT part.file FROM jsonb_array_elements(finished_instance.uploads) AS part (file) WHERE part.file ->> 'name' = file.name
) AS output ON true;


-- name: check_finished_uploads_page
-- Purpose: return outputs of some instances of the history.
-- Arguments: $1 instance_id after which to start, $2 how many instances.
-- Result: instance_id, name, nbytes, md5; by instance; name null for an instance without any.
SELECT
    instance.instance_id, output.file ->> 'name' AS name, (output.file ->> 'nbytes')::bigint AS nbytes,
    output.file ->> 'md5' AS md5
FROM (
    SELECT instance_id, uploads FROM finished_instance WHERE instance_id > $1 ORDER BY instance_id LIMIT $2
) AS instance
LEFT JOIN LATERAL jsonb_array_elements(instance.uploads) AS output (file) ON true
ORDER BY instance.instance_id, name;


-- name: check_open_jobs
-- Purpose: find open jobs that would stay open forever: with nothing unsent, in progress or marked, or in an ended
--   batch; and jobs with enough reports but no mark for validation. Reads every job and instance.
-- Arguments: $1 limit.
-- Result: thing, because; by job.
WITH stuck AS (
    SELECT job.job_id, 'it is open, and nothing of it is unsent, in progress or marked for validation' AS because
    FROM job
    WHERE job.state = 'open'
        AND NOT EXISTS (SELECT FROM job_todo WHERE job_todo.job_id = job.job_id)
        AND NOT EXISTS (
            SELECT FROM instance WHERE instance.job_id = job.job_id AND instance.state IN ('unsent', 'in_progress')
        )
    UNION ALL
    SELECT job.job_id, format('it is open, and its batch %s is %s: abort the batch once more', batch.batch_id, batch.state)
    FROM job
    JOIN batch USING (batch_id)
    WHERE job.state = 'open' AND batch.state <> 'active'
    UNION ALL
    SELECT instance.job_id, format('its instance %s is reported, but not marked for validation', instance.instance_id)
    FROM instance
    JOIN job USING (job_id)
    JOIN job_class ON job_class.job_class_id = job.job_class_id
    WHERE instance.state = 'reported'
        AND NOT EXISTS (SELECT FROM job_todo WHERE job_todo.job_id = instance.job_id)
        AND (
            job.state <> 'open'
            OR (
                SELECT count(*)
                FROM instance AS usable
                WHERE usable.job_id = job.job_id AND usable.state IN ('reported', 'inconclusive', 'valid')
            ) >= least(job_class.max_instances + job.more_instances, greatest(job_class.quorum, job.copies))
        )
)
SELECT 'job ' || job_id AS thing, because
FROM stuck
ORDER BY job_id
LIMIT $1;


-- name: check_orphans
-- Purpose: find rows with a missing or wrong owner. Reads every job, instance and upload.
-- Arguments: $1 limit.
-- Result: thing, because.
SELECT thing, because
FROM (
    SELECT 'instance ' || instance.instance_id AS thing, format('there is no job %s', instance.job_id) AS because
    FROM instance
    WHERE NOT EXISTS (SELECT FROM job WHERE job.job_id = instance.job_id)
    UNION ALL
    SELECT 'instance ' || instance.instance_id, format('it is not of the batch, class or shard of its job %s', job.job_id)
    FROM instance
    JOIN job USING (job_id)
    WHERE instance.batch_id <> job.batch_id OR instance.job_class_id <> job.job_class_id
        OR instance.shard <> instance.job_id % 64
    UNION ALL
    SELECT 'instance ' || instance.instance_id, format('there is no host %s', instance.host_id)
    FROM instance
    WHERE instance.host_id IS NOT NULL AND NOT EXISTS (SELECT FROM host WHERE host.host_id = instance.host_id)
    UNION ALL
    SELECT 'instance ' || instance.instance_id, format('there is no app version %s', instance.app_version_id)
    FROM instance
    WHERE instance.app_version_id IS NOT NULL
        AND NOT EXISTS (SELECT FROM app_version WHERE app_version.app_version_id = instance.app_version_id)
    UNION ALL
    SELECT 'instance ' || finished_instance.instance_id, format('there is no job %s in the history', finished_instance.job_id)
    FROM finished_instance
    WHERE NOT EXISTS (SELECT FROM finished_job WHERE finished_job.job_id = finished_instance.job_id)
    UNION ALL
    SELECT 'upload ' || upload.name, format('there is no instance %s', upload.instance_id)
    FROM upload
    WHERE NOT EXISTS (SELECT FROM instance WHERE instance.instance_id = upload.instance_id)
    UNION ALL
    SELECT 'standard error of instance ' || instance_stderr.instance_id, 'there is no such instance'
    FROM instance_stderr
    WHERE NOT EXISTS (SELECT FROM instance WHERE instance.instance_id = instance_stderr.instance_id)
    UNION ALL
    SELECT 'mark of job ' || job_todo.job_id, 'there is no such job'
    FROM job_todo
    WHERE NOT EXISTS (SELECT FROM job WHERE job.job_id = job_todo.job_id)
    UNION ALL
    SELECT 'statistics of host ' || host_app_version.host_id, format('of app version %s: there is no such host', app_version_id)
    FROM host_app_version
    WHERE NOT EXISTS (SELECT FROM host WHERE host.host_id = host_app_version.host_id)
) AS orphan
ORDER BY thing
LIMIT $1;


-- name: check_outputs
-- Purpose: find valid results without a required output. Reads every instance, including the history.
-- Arguments: $1 limit.
-- Result: thing, because; by instance.
WITH wanted AS (
    SELECT job_class.job_class_id, output.position - 1 AS number, output.file ->> 'name' AS name
    FROM job_class
    CROSS JOIN LATERAL jsonb_array_elements(job_class.outputs) WITH ORDINALITY AS output (file, position)
    WHERE NOT coalesce((output.file ->> 'optional')::boolean, false)
),
brought AS (
    SELECT instance_id, name FROM upload
    UNION ALL
    SELECT finished_instance.instance_id, output.file ->> 'name'
    FROM finished_instance
    CROSS JOIN LATERAL jsonb_array_elements(finished_instance.uploads) AS output (file)
),
taken AS (
    SELECT instance_id, job_class_id, state FROM instance WHERE state IN ('reported', 'inconclusive', 'valid')
    UNION ALL
    SELECT instance_id, job_class_id, state FROM finished_instance WHERE state IN ('reported', 'inconclusive', 'valid')
)
SELECT
    'instance ' || taken.instance_id AS thing, format('it is %s, and its output %s is missing', taken.state, wanted.name) AS because
FROM taken
JOIN wanted USING (job_class_id)
WHERE NOT EXISTS (
    SELECT
    FROM brought
    WHERE brought.instance_id = taken.instance_id
        AND right(brought.name, length('_' || taken.instance_id || '_r' || wanted.number))
            = '_' || taken.instance_id || '_r' || wanted.number
)
ORDER BY taken.instance_id
LIMIT $1;


-- name: check_times
-- Purpose: find logical times, charges and usage that are negative or not finite, and instances sent before they were
--   created.
-- Arguments: $1 limit.
-- Result: thing, because.
SELECT thing, because
FROM (
    SELECT
        'batch ' || batch_id AS thing,
        format(
            'its logical times are %s to %s, %s s were charged and %s s refunded',
            logical_start_at, logical_end_at, charged_s, refunded_s
        ) AS because
    FROM batch
    WHERE NOT (
        logical_start_at > '-infinity' AND logical_start_at < 'infinity'
        AND logical_end_at >= logical_start_at AND logical_end_at < 'infinity'
        AND charged_s >= 0 AND charged_s < 'infinity' AND refunded_s > '-infinity'  -- below 0: it used more than was charged
        AND refunded_s <= charged_s + 1e-6 * (1 + charged_s)
        AND order_key > '-infinity' AND order_key < 'infinity'
    )
    UNION ALL
    SELECT 'submitter ' || submitter_id, format('its logical time is %s', logical_at)
    FROM submitter
    WHERE NOT (logical_at > '-infinity' AND logical_at < 'infinity')
    UNION ALL
    SELECT
        format('usage of submitter %s in account %s', submitter_id, account_id),
        format('%s flop, %s CPU s, %s byte s of memory, %s GPU s', flop, cpu_s, memory_byte_s, gpu_s)
    FROM usage
    WHERE NOT (
        flop >= 0 AND flop < 'infinity' AND cpu_s >= 0 AND cpu_s < 'infinity'
        AND memory_byte_s >= 0 AND memory_byte_s < 'infinity' AND gpu_s >= 0 AND gpu_s < 'infinity'
    )
    UNION ALL
    SELECT 'grant of account ' || account_id, format('%s service units used, %s reserved', used_su, reserved_su)
    FROM account_grant
    WHERE NOT (used_su >= 0 AND used_su < 'infinity' AND reserved_su >= 0 AND reserved_su < 'infinity')
    UNION ALL
    SELECT 'instance ' || instance_id, format('it was sent at %s, due at %s', sent_at, due_at)
    FROM instance
    WHERE sent_at IS NOT NULL AND NOT (sent_at > '-infinity' AND timeout_at < 'infinity')
) AS odd
ORDER BY thing
LIMIT $1;


-- name: check_uploads_page
-- Purpose: return one page of recorded outputs.
-- Arguments: $1 instance_id and $2 name after which to start, $3 how many.
-- Result: instance_id, name, nbytes, md5; by instance and name.
SELECT instance_id, name, nbytes, md5
FROM upload
WHERE (instance_id, name) > ($1, $2)
ORDER BY instance_id, name
LIMIT $3;


-- name: counters_that_differ
-- Purpose: find counters that differ from the rows, except those of batches with a purged month, and waiting batches
--   without a mark; reads every job and instance, including the history.
-- Arguments: none.
-- Result: batch_id, counted and expected (JSON), by batch.
WITH expected AS (
    SELECT
        batch_id,
        sum(jobs_validated)::bigint AS jobs_validated, sum(jobs_failed)::bigint AS jobs_failed,
        sum(unsent)::bigint AS unsent, sum(in_progress)::bigint AS in_progress, sum(retries)::bigint AS retries,
        sum(sent)::bigint AS sent, sum(reported)::bigint AS reported,
        sum(deadlines_missed)::bigint AS deadlines_missed
    FROM (
        SELECT
            batch_id, 0 AS jobs_validated, 0 AS jobs_failed,
            (state = 'unsent')::int AS unsent,
            (state = 'in_progress')::int AS in_progress,
            (state IN ('invalid', 'failed', 'timed_out', 'aborted', 'too_late'))::int AS retries,
            (sent_at IS NOT NULL)::int AS sent,
            (reported_at IS NOT NULL)::int AS reported,
            (state = 'timed_out' OR coalesce(reported_at > due_at, false))::int AS deadlines_missed
        FROM (
            SELECT batch_id, state, sent_at, due_at, reported_at FROM instance
            UNION ALL
            SELECT batch_id, state, sent_at, due_at, reported_at FROM finished_instance
        ) AS every_instance
        UNION ALL
        SELECT
            batch_id, (state = 'valid')::int, (state = 'failed')::int, 0, 0, 0, 0, 0, 0
        FROM (
            SELECT batch_id, job_id, state FROM job
            UNION ALL
            SELECT batch_id, job_id, state FROM finished_job
        ) AS every_job
    ) AS row
    GROUP BY batch_id
),
counted AS (
    SELECT
        batch_id, sum(jobs_validated)::bigint AS jobs_validated, sum(jobs_failed)::bigint AS jobs_failed,
        sum(unsent)::bigint AS unsent, sum(in_progress)::bigint AS in_progress, sum(retries)::bigint AS retries,
        sum(sent)::bigint AS sent, sum(reported)::bigint AS reported,
        sum(deadlines_missed)::bigint AS deadlines_missed
    FROM batch_count
    GROUP BY batch_id
)
SELECT batch_id, to_jsonb(counted) AS counted, to_jsonb(expected) AS expected
FROM counted
FULL JOIN expected USING (batch_id)
WHERE to_jsonb(counted) IS DISTINCT FROM to_jsonb(expected)
    AND NOT EXISTS (
        SELECT
        FROM batch
        JOIN finished_month
            ON batch.ended_at >= finished_month.starts_at AND batch.ended_at < finished_month.ends_at
        WHERE batch.batch_id = coalesce(counted.batch_id, expected.batch_id) AND finished_month.purged_at IS NOT NULL
    )
UNION ALL
SELECT batch_id, jsonb_build_object('waiting', false), jsonb_build_object('waiting', true)
FROM batch
WHERE state = 'active' AND NOT waiting
    AND EXISTS (SELECT FROM instance WHERE instance.batch_id = batch.batch_id AND instance.state = 'unsent')
ORDER BY batch_id;


-- name: forget_uploads_of_unsent
-- Purpose: delete the upload records of unsent instances. Reads every unsent instance; used after a restore.
-- Arguments: none.
-- Result: one row for each record.
DELETE FROM upload
USING instance
WHERE instance.state = 'unsent' AND upload.instance_id = instance.instance_id
RETURNING upload.name;


-- name: greatest_instance_id
-- Purpose: return the highest instance id ever used in this database. Unsent instances get ids beyond it after a
--   restore.
-- Arguments: none.
-- Result: instance_id.
SELECT greatest(
    (SELECT last_value FROM pg_sequences WHERE schemaname = current_schema() AND sequencename = 'instance_instance_id_seq'),
    (SELECT max(instance_id) FROM instance),
    0
) AS instance_id;


-- name: renumber_unsent
-- Purpose: give every unsent instance a new id, in the order of the old ones: clients may know the old ids from
--   before a restore. Reads every unsent instance.
-- Arguments: $1 the new ids begin behind this one; it is greater than every id in use.
-- Result: instances, how many.
WITH numbered AS (
    SELECT instance_id, row_number() OVER (ORDER BY instance_id) AS number FROM instance WHERE state = 'unsent'
),
renumbered AS (
    UPDATE instance SET instance_id = $1::bigint + numbered.number
    FROM numbered
    WHERE instance.instance_id = numbered.instance_id
    RETURNING 1
)
SELECT count(*) AS instances FROM renumbered;


-- name: sessions_that_lock
-- Purpose: count the sessions of processes that serve this project: workers and background processes hold advisory
--   locks while they run.
-- Arguments: none.
-- Result: sessions.
SELECT count(DISTINCT pid) AS sessions
FROM pg_locks
WHERE locktype = 'advisory'
    AND granted
    AND pid <> pg_backend_pid()
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database());
