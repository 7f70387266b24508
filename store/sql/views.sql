-- name: account_name
-- Purpose: return an account's name.
-- Arguments: $1 account_id.
-- Result: the name; no row when there is none.
SELECT name FROM account WHERE account_id = $1;


-- name: app_name
-- Purpose: return an app's name.
-- Arguments: $1 app_id.
-- Result: the name; no row when there is none.
SELECT name FROM app WHERE app_id = $1;


-- name: batch_by_id
-- Purpose: return one batch with its totals.
-- Arguments: $1 batch_id.
-- Result: the row of batch_with_counts; none when there is no such batch.
SELECT * FROM batch_with_counts WHERE batch_id = $1;


-- name: batches_with
-- Purpose: return some batches with their totals.
-- Arguments: $1 batch_ids.
-- Result: rows of batch_with_counts by id.
SELECT * FROM batch_with_counts WHERE batch_id = ANY($1::bigint[]) ORDER BY batch_id;


-- name: classes_of_batch
-- Purpose: return the job classes of a batch.
-- Arguments: $1 batch_id.
-- Result: job classes by id.
SELECT job_class_id, batch_id, fpops_est_flop, fpops_bound_flop, memory_bytes, disk_bytes, delay_bound_s, ncpus, quorum,
       max_errors, max_instances, hr_type, validator, tolerance, inputs, outputs
FROM job_class
WHERE batch_id = $1
ORDER BY job_class_id;


-- name: finished_instances_of_job
-- Purpose: return the instances of a job of the history, for display.
-- Arguments: $1 job_id, $2 batch_id.
-- Result: instances by id, with their standard error and uploads (JSON).
SELECT
    instance_id, job_id, state, retries, tight, host_id, app_version_id, sent_at, due_at, reported_at, est_runtime_s,
    elapsed_s, exit_status, reason, due_terms, stderr, uploads, timeout_at, turnaround_sample, copied_because, credit
FROM finished_instance
WHERE batch_ended_at = (SELECT ended_at FROM batch WHERE batch_id = $2) AND job_id = $1
ORDER BY instance_id;


-- name: finished_job_by_id
-- Purpose: return one job of the history.
-- Arguments: $1 job_id.
-- Result: the job; no row when there is none.
SELECT
    finished_job.job_id, finished_job.batch_id, finished_job.job_class_id, finished_job.state, finished_job.failure,
    finished_job.canonical_instance_id,
    coalesce(replace(template.command_line, '{i}', finished_job.number::text), finished_job.command_line) AS command_line,
    coalesce(template.inputs, finished_job.inputs) AS inputs
FROM finished_job
LEFT JOIN job_template AS template ON template.template_id = finished_job.template_id
WHERE finished_job.job_id = $1;


-- name: host_by_id
-- Purpose: return one host.
-- Arguments: $1 host_id.
-- Result: the host; no row when there is none.
SELECT * FROM host WHERE host_id = $1::bigint;


-- name: instances_of_job
-- Purpose: return the instances of a job, for display.
-- Arguments: $1 job_id.
-- Result: instances by id, with their standard error and uploads (JSON).
SELECT
    instance.instance_id, instance.job_id, instance.state, instance.retries, instance.tight, instance.host_id,
    instance.app_version_id, instance.sent_at, instance.due_at, instance.reported_at, instance.est_runtime_s,
    instance.elapsed_s, instance.exit_status, instance.reason, instance.due_terms, instance_stderr.stderr,
    instance.timeout_at, instance.turnaround_sample, instance.copied_because, instance.credit,
    (
        SELECT jsonb_agg(jsonb_build_object('name', name, 'nbytes', nbytes, 'md5', md5) ORDER BY name)
        FROM upload
        WHERE upload.instance_id = instance.instance_id
    ) AS uploads
FROM instance
LEFT JOIN instance_stderr USING (instance_id)
WHERE instance.job_id = $1
ORDER BY instance.instance_id;


-- name: job_by_id
-- Purpose: return one job.
-- Arguments: $1 job_id.
-- Result: the job; no row when there is none.
SELECT
    job.job_id, job.batch_id, job.job_class_id, job.state, job.failure, job.canonical_instance_id,
    coalesce(replace(template.command_line, '{i}', job.number::text), job.command_line) AS command_line,
    coalesce(template.inputs, job.inputs) AS inputs
FROM job
LEFT JOIN job_template AS template ON template.template_id = job.template_id
WHERE job.job_id = $1;


-- name: job_of_instance
-- Purpose: return the job of an instance, also in the history.
-- Arguments: $1 instance_id.
-- Result: its job_id; no row when the instance is unknown. The history is read only for what is not in instance.
SELECT job_id FROM instance WHERE instance_id = $1
UNION ALL
SELECT job_id FROM finished_instance WHERE instance_id = $1
LIMIT 1;


-- name: list_finished_jobs
-- Purpose: return jobs of a batch that are in the history.
-- Arguments: $1 batch_id, $2 limit, $3 job_id after which to continue, 0 for the start.
-- Result: jobs by id.
SELECT
    finished_job.job_id, finished_job.batch_id, finished_job.job_class_id, finished_job.state, finished_job.failure,
    finished_job.canonical_instance_id,
    coalesce(replace(template.command_line, '{i}', finished_job.number::text), finished_job.command_line) AS command_line,
    coalesce(template.inputs, finished_job.inputs) AS inputs
FROM finished_job
LEFT JOIN job_template AS template ON template.template_id = finished_job.template_id
WHERE
    finished_job.batch_ended_at = (SELECT ended_at FROM batch WHERE batch.batch_id = $1)
    AND finished_job.batch_id = $1 AND finished_job.job_id > $3
ORDER BY finished_job.job_id
LIMIT $2;


-- name: list_hosts
-- Purpose: return hosts.
-- Arguments: $1 limit, $2 host_id after which to continue, 0 for the start.
-- Result: hosts by id.
SELECT * FROM host WHERE host_id > $2 ORDER BY host_id LIMIT $1;


-- name: list_jobs
-- Purpose: return jobs of a batch.
-- Arguments: $1 batch_id, $2 limit, $3 job_id after which to continue, 0 for the start.
-- Result: jobs by id.
SELECT
    job.job_id, job.batch_id, job.job_class_id, job.state, job.failure, job.canonical_instance_id,
    coalesce(replace(template.command_line, '{i}', job.number::text), job.command_line) AS command_line,
    coalesce(template.inputs, job.inputs) AS inputs
FROM job
LEFT JOIN job_template AS template ON template.template_id = job.template_id
WHERE job.batch_id = $1 AND job.job_id > $3
ORDER BY job.job_id
LIMIT $2;


-- name: returned_finished_instances
-- Purpose: return what hosts returned for a batch's instances in the history.
-- Arguments: $1 batch_id, $2 instance_ids.
-- Result: instances with host, run times, exit status and uploads (JSON or null).
SELECT instance_id, host_id, elapsed_s, cpu_s, exit_status, uploads
FROM finished_instance
WHERE
    batch_ended_at = (SELECT ended_at FROM batch WHERE batch.batch_id = $1)
    AND instance_id = ANY($2::bigint[]);


-- name: returned_instances
-- Purpose: return what hosts returned for instances.
-- Arguments: $1 instance_ids.
-- Result: instances with host, run times, exit status and uploads (JSON or null).
SELECT
    instance.instance_id, instance.host_id, instance.elapsed_s, instance.cpu_s, instance.exit_status,
    (
        SELECT jsonb_agg(jsonb_build_object('name', name, 'nbytes', nbytes, 'md5', md5) ORDER BY name)
        FROM upload
        WHERE upload.instance_id = instance.instance_id
    ) AS uploads
FROM instance
WHERE instance.instance_id = ANY($1::bigint[]);


-- name: submitter_name
-- Purpose: return a submitter's name.
-- Arguments: $1 submitter_id.
-- Result: the name; no row when there is none.
SELECT name FROM submitter WHERE submitter_id = $1;


-- name: versions_of_hosts
-- Purpose: return hosts' statistics per app version.
-- Arguments: $1 host_ids.
-- Result: rows of host_app_version by host and app version.
SELECT *
FROM host_app_version
WHERE host_id = ANY($1::int[])
ORDER BY host_id, app_version_id;


-- name: whose_batches
-- Purpose: return the owners and the app of batches, by name.
-- Arguments: $1 batch_ids (array).
-- Result: batch_id, app, submitter, account, by id.
SELECT batch_id, app.name AS app, submitter.name AS submitter, account.name AS account
FROM batch
JOIN app USING (app_id)
JOIN submitter USING (submitter_id)
JOIN account ON account.account_id = batch.account_id
WHERE batch_id = ANY($1::bigint[])
ORDER BY batch_id;

-- name: active_totals
-- Purpose: return the remaining work: the summed counters of active batches, by app and quality of service.
-- Arguments: none.
-- Result: one row per app and qos with active batches, by their names.
SELECT
    app.name AS app_name, batch.qos, count(*) AS batches, count(batch.hold) AS held,
    sum(batch.jobs_total)::bigint AS jobs_total, sum(total.jobs_validated)::bigint AS jobs_validated,
    sum(total.jobs_failed)::bigint AS jobs_failed, sum(total.unsent)::bigint AS unsent,
    sum(total.in_progress)::bigint AS in_progress, sum(total.sent)::bigint AS sent,
    sum(total.deadlines_missed)::bigint AS deadlines_missed
FROM batch
JOIN app ON app.app_id = batch.app_id
CROSS JOIN LATERAL (
    SELECT
        coalesce(sum(batch_count.jobs_validated), 0) AS jobs_validated,
        coalesce(sum(batch_count.jobs_failed), 0) AS jobs_failed,
        coalesce(sum(batch_count.unsent), 0) AS unsent,
        coalesce(sum(batch_count.in_progress), 0) AS in_progress,
        coalesce(sum(batch_count.sent), 0) AS sent,
        coalesce(sum(batch_count.deadlines_missed), 0) AS deadlines_missed
    FROM batch_count
    WHERE batch_count.batch_id = batch.batch_id
) AS total
WHERE batch.state = 'active'
GROUP BY app.name, batch.qos
ORDER BY app.name, batch.qos;


-- name: batch_names
-- Purpose: return the names of batches.
-- Arguments: $1 batch_ids (array).
-- Result: batch_id and name, by id.
SELECT batch_id, name FROM batch WHERE batch_id = ANY($1::bigint[]) ORDER BY batch_id;


-- name: active_batches_sorted
-- Purpose: return selected active batches in some order. It reads all active batches, from their index, and keeps the first.
-- Arguments: $1 sort key (id, order, deadline, expected_end, latest_end, failed), $2 1 or -1 for descending, $3 and $4 keys and $5 batch_id
--   after which to continue (-infinity, -infinity and 0 for the start), $6 limit, $7 qos, $8 app_id, $9 submitter_id, $10 account_id,
--   $11 queue (null: any), $12 text, $13 time at which their deadlines are missed or at risk (null: any), $14 only those over a limit,
--   $15 batch_ids (null: all), $16 only those with failed jobs, $17 the seconds after a move that a forecast must count;
--   whose unsent instances are not sent: $18 those of all batches, or $19 batch_ids, $20 app_ids, $21 queues,
--   $22 batch_ids sent first, in sequence; $23 the sending_s of a forecast that is not shown once all was sent.
-- Result: batch_id in order, first and second (its keys). Batches whose end is not shown have no end, and those without fresh
--   unsent instances no place in the order.
SELECT keyed.batch_id, keyed.first, keyed.second
FROM (
    SELECT
        batch.batch_id,
        coalesce(
            $2::int * CASE $1::text
                WHEN 'id' THEN 0
                WHEN 'order' THEN turn.tier
                WHEN 'deadline' THEN deadline_at
                WHEN 'expected_end' THEN shown.q50_at
                WHEN 'latest_end' THEN shown.q90_at
                WHEN 'failed' THEN (SELECT sum(jobs_failed) FROM batch_count WHERE batch_count.batch_id = batch.batch_id)
            END,
            'Infinity'::double precision
        ) AS first,
        CASE $1::text WHEN 'order' THEN coalesce($2::int * turn.key, 'Infinity'::double precision) ELSE 0.0 END AS second
    FROM batch
    LEFT JOIN LATERAL (
        SELECT
            CASE WHEN urgent.is_first THEN '-Infinity'::double precision ELSE batch.order_tier END AS tier,
            CASE WHEN urgent.is_first THEN array_position($22, batch.batch_id) ELSE batch.order_key END AS key
        FROM (SELECT batch.batch_id IN (SELECT unnest($22::bigint[])) AS is_first) AS urgent
        WHERE $1 = 'order' AND EXISTS (
            SELECT FROM instance
            WHERE instance.batch_id = batch.batch_id AND instance.state = 'unsent' AND NOT instance.urgent
        )
    ) AS turn ON true
    LEFT JOIN LATERAL (
        SELECT batch.completion_q50_at AS q50_at, batch.completion_q90_at AS q90_at
        FROM batch_forecast AS last
        CROSS JOIN LATERAL (
            SELECT
                (SELECT sum(unsent) FROM batch_count WHERE batch_count.batch_id = batch.batch_id) AS unsent,
                (
                    SELECT (forecast.terms ->> 'sending_s')::double precision
                    FROM forecast
                    WHERE forecast.batch_id = last.batch_id AND forecast.made_at = last.made_at
                ) AS sending_s,
                coalesce(batch.moved_at + $17::double precision > last.made_at, false) AS is_moved
        ) AS made
        WHERE last.batch_id = batch.batch_id AND $1 IN ('expected_end', 'latest_end') AND NOT coalesce(
            CASE
                WHEN made.unsent > 0 THEN
                    made.is_moved OR $18::boolean OR batch.batch_id = ANY($19::bigint[])
                    OR batch.app_id = ANY($20::int[]) OR batch.queue = ANY($21::text[])
                ELSE made.is_moved AND made.sending_s > 0.0 OR made.sending_s >= $23::double precision
            END,
            false
        )
    ) AS shown ON true
    WHERE
        state = 'active'
        AND ($7::text IS NULL OR qos = $7)
        AND ($8::int IS NULL OR app_id = $8)
        AND ($9::int IS NULL OR submitter_id = $9)
        AND ($10::int IS NULL OR account_id = $10)
        AND ($11::text IS NULL OR queue = $11)
        AND strpos(lower(name), $12) > 0
        AND (
            $13::double precision IS NULL
            OR deadline_at <= $13
            OR EXISTS (
                SELECT
                FROM latest_forecast AS latest
                WHERE latest.batch_id = batch.batch_id AND latest.has_evidence AND latest.q90_at > batch.deadline_at
            )
        )
        AND (NOT $14::boolean OR hold IS NOT NULL)
        AND ($15::bigint[] IS NULL OR batch.batch_id = ANY($15))
        AND (NOT $16::boolean OR (SELECT sum(jobs_failed) FROM batch_count WHERE batch_count.batch_id = batch.batch_id) > 0)
) AS keyed
WHERE (keyed.first, keyed.second, $2::int * keyed.batch_id) > ($3::double precision, $4::double precision, $2::int * $5::bigint)
ORDER BY keyed.first, keyed.second, $2::int * keyed.batch_id
LIMIT $6;


-- name: active_counts
-- Purpose: count selected active batches, and among them those at risk, those that a limit blocks, and some given ones.
-- Arguments: $1 now, $2 qos, $3 app_id, $4 submitter_id, $5 account_id, $6 queue (null: any), $7 text, $8 batch_ids that need
--   attention.
-- Result: one row: active, at_risk, blocked, attention.
SELECT
    count(*) AS active,
    count(*) FILTER (
        WHERE deadline_at <= $1
            OR EXISTS (
                SELECT
                FROM latest_forecast AS latest
                WHERE latest.batch_id = batch.batch_id AND latest.has_evidence AND latest.q90_at > batch.deadline_at
            )
    ) AS at_risk,
    count(hold) AS blocked,
    count(*) FILTER (WHERE batch_id = ANY($8::bigint[])) AS attention
FROM batch
WHERE
    state = 'active'
    AND ($2::text IS NULL OR qos = $2)
    AND ($3::int IS NULL OR app_id = $3)
    AND ($4::int IS NULL OR submitter_id = $4)
    AND ($5::int IS NULL OR account_id = $5)
    AND ($6::text IS NULL OR queue = $6)
    AND strpos(lower(name), $7) > 0;


-- name: batch_at
-- Purpose: return the batch that is a number of batches after another.
-- Arguments: $1 batch_id, $2 whether in descending order, $3 how many to skip.
-- Result: batch_id; no row when there are fewer.
(
    SELECT batch_id FROM batch WHERE $2::boolean AND batch_id < $1 ORDER BY batch_id DESC OFFSET $3 LIMIT 1
)
UNION ALL
(
    SELECT batch_id FROM batch WHERE NOT $2::boolean AND batch_id > $1 ORDER BY batch_id OFFSET $3 LIMIT 1
);


-- name: batches_by_id
-- Purpose: return selected batches in order of id.
-- Arguments: $1 batch_id after which to continue, $2 whether in descending order, $3 limit, $4 state, $5 qos, $6 app_id, $7 submitter_id,
--   $8 account_id, $9 queue (null: any), $10 text, $11 the last batch_id to look at (null: none), $12 only those with
--   failed jobs.
-- Result: batch_id in order.
(
    SELECT batch_id
    FROM batch
    WHERE
        $2::boolean AND batch_id < $1 AND batch_id >= coalesce($11::bigint, 0)
        AND ($4::text IS NULL OR state = $4)
        AND ($5::text IS NULL OR qos = $5)
        AND ($6::int IS NULL OR app_id = $6)
        AND ($7::int IS NULL OR submitter_id = $7)
        AND ($8::int IS NULL OR account_id = $8)
        AND ($9::text IS NULL OR queue = $9)
        AND strpos(lower(name), $10) > 0
        AND (NOT $12::boolean OR (SELECT sum(jobs_failed) FROM batch_count WHERE batch_count.batch_id = batch.batch_id) > 0)
    ORDER BY batch_id DESC
    LIMIT $3
)
UNION ALL
(
    SELECT batch_id
    FROM batch
    WHERE
        NOT $2::boolean AND batch_id > $1 AND batch_id <= coalesce($11::bigint, 9223372036854775807)
        AND ($4::text IS NULL OR state = $4)
        AND ($5::text IS NULL OR qos = $5)
        AND ($6::int IS NULL OR app_id = $6)
        AND ($7::int IS NULL OR submitter_id = $7)
        AND ($8::int IS NULL OR account_id = $8)
        AND ($9::text IS NULL OR queue = $9)
        AND strpos(lower(name), $10) > 0
        AND (NOT $12::boolean OR (SELECT sum(jobs_failed) FROM batch_count WHERE batch_count.batch_id = batch.batch_id) > 0)
    ORDER BY batch_id
    LIMIT $3
);


-- name: listed_batches
-- Purpose: return batches for lists, with the names of their owners.
-- Arguments: $1 batch_ids.
-- Result: rows of batch_with_counts with app_name, submitter_name and account_name, by id.
SELECT
    batch_with_counts.*, app.name AS app_name, submitter.name AS submitter_name, account.name AS account_name
FROM batch_with_counts
JOIN app ON app.app_id = batch_with_counts.app_id
JOIN submitter ON submitter.submitter_id = batch_with_counts.submitter_id
JOIN account ON account.account_id = batch_with_counts.account_id
WHERE batch_with_counts.batch_id = ANY($1::bigint[])
ORDER BY batch_with_counts.batch_id;


-- name: finished_instances_of_batch
-- Purpose: return a batch's instances of the history in some states, retries first.
-- Arguments: $1 batch_id, $2 states, $3 minus the retries and $4 instance_id after which to continue (-32768 and 0 for the start),
--   $5 limit.
-- Result: instances by retries (descending) and id.
SELECT
    one.instance_id, one.job_id, one.state, one.retries, false AS urgent, one.tight, one.created_at, one.host_id, one.sent_at,
    one.due_at, one.reported_at, one.reason, one.copied_because
FROM unnest($2::text[]) AS wanted (state)
CROSS JOIN LATERAL (
    SELECT *
    FROM finished_instance
    WHERE batch_ended_at = (SELECT ended_at FROM batch WHERE batch_id = $1)
        AND finished_instance.batch_id = $1
        AND finished_instance.state = wanted.state
        AND (-retries, instance_id) > ($3::smallint, $4::bigint)
    ORDER BY -retries, instance_id
    LIMIT $5
) AS one
ORDER BY -one.retries, one.instance_id
LIMIT $5;


-- name: unsent_extras
-- Purpose: count a batch's unsent copies and retries.
-- Arguments: $1 batch_id, $2 limit of both together.
-- Result: one row: copies, retries.
SELECT
    (count(*) FILTER (WHERE first.copied_because IS NOT NULL))::int AS copies,
    (count(*) FILTER (WHERE first.copied_because IS NULL))::int AS retries
FROM (
    SELECT copied_because
    FROM instance
    WHERE batch_id = $1 AND state = 'unsent' AND urgent AND retries > 0
    LIMIT $2
) AS first;


-- name: held_instances
-- Purpose: return a host's instances in progress.
-- Arguments: $1 host_id, $2 limit.
-- Result: instances by due_at and id, with the name of their app.
SELECT
    instance.instance_id, instance.job_id, instance.batch_id, instance.host_id, instance.sent_at, instance.due_at,
    instance.est_runtime_s, instance.tight, app.name AS app_name
FROM instance
JOIN batch ON batch.batch_id = instance.batch_id
JOIN app ON app.app_id = batch.app_id
WHERE instance.host_id = $1 AND instance.state = 'in_progress'
ORDER BY instance.due_at, instance.instance_id
LIMIT $2;


-- name: instances_of_batch
-- Purpose: return a batch's instances in some states, retries first. Those of the history are in
--   finished_instances_of_batch.
-- Arguments: $1 batch_id, $2 states, $3 minus the retries and $4 instance_id after which to continue (-32768 and 0 for the start),
--   $5 limit.
-- Result: instances by retries (descending) and id. What is neither sent nor urgent has no retries and lies in 64 shards.
SELECT
    instance.instance_id, instance.job_id, instance.state, instance.retries, instance.urgent AND instance.state = 'unsent' AS urgent,
    instance.tight, instance.created_at, instance.host_id, instance.sent_at, instance.due_at, instance.reported_at, instance.reason,
    instance.copied_because
FROM (
    SELECT either.instance_id
    FROM (
        SELECT one.instance_id, one.least
        FROM unnest($2::text[]) AS wanted (state)
        CROSS JOIN LATERAL (
            SELECT listed.instance_id, -listed.retries AS least
            FROM instance AS listed
            WHERE listed.batch_id = $1
                AND listed.state = wanted.state
                AND (listed.state <> 'unsent' OR listed.urgent)
                AND listed.retries >= 0
                AND (-listed.retries, listed.instance_id) > ($3::smallint, $4::bigint)
            ORDER BY -listed.retries, listed.instance_id
            LIMIT $5
        ) AS one
        UNION ALL
        SELECT one.instance_id, 0
        FROM generate_series(0, 63) AS place (shard)
        CROSS JOIN LATERAL (
            SELECT fresh.instance_id
            FROM instance AS fresh
            WHERE fresh.batch_id = $1
                AND fresh.shard = place.shard
                AND fresh.state = 'unsent'
                AND NOT fresh.urgent
                AND fresh.instance_id > CASE WHEN $3::smallint < 0 THEN 0 ELSE $4::bigint END
            ORDER BY fresh.instance_id
            LIMIT $5
        ) AS one
        WHERE 'unsent' = ANY($2::text[])
    ) AS either
    ORDER BY either.least, either.instance_id
    LIMIT $5
) AS chosen
JOIN instance ON instance.instance_id = chosen.instance_id
ORDER BY -instance.retries, instance.instance_id;


-- name: latest_instances_of_batch
-- Purpose: return a batch's ended instances, newest first. Those of the history are in latest_finished_instances.
-- Arguments: $1 batch_id, $2 states, without unsent, $3 instance_id before which to continue, $4 limit.
-- Result: instances by id, descending. The index has them by retries, of which few values exist.
WITH RECURSIVE kinds (state, least) AS (
    SELECT wanted.state, 1
    FROM unnest($2::text[]) AS wanted (state)
    UNION ALL
    SELECT kinds.state, following.least
    FROM kinds
    CROSS JOIN LATERAL (
        SELECT -listed.retries AS least
        FROM instance AS listed
        WHERE listed.batch_id = $1
            AND listed.state = kinds.state
            AND (listed.state <> 'unsent' OR listed.urgent)
            AND listed.retries >= 0
            AND -listed.retries < kinds.least
        ORDER BY -listed.retries DESC, listed.instance_id DESC
        LIMIT 1
    ) AS following
)
SELECT
    one.instance_id, one.job_id, one.state, one.retries, false AS urgent, one.tight, one.created_at, one.host_id, one.sent_at,
    one.due_at, one.reported_at, one.reason, one.copied_because
FROM kinds
CROSS JOIN LATERAL (
    SELECT *
    FROM instance AS listed
    WHERE listed.batch_id = $1
            AND listed.state = kinds.state
            AND (listed.state <> 'unsent' OR listed.urgent)
            AND listed.retries >= 0
        AND (-listed.retries, listed.instance_id) < (kinds.least, $3::bigint)
        AND -listed.retries >= kinds.least
    ORDER BY -listed.retries DESC, listed.instance_id DESC
    LIMIT $4
) AS one
ORDER BY one.instance_id DESC
LIMIT $4;


-- name: latest_finished_instances
-- Purpose: return a batch's instances of the history, newest first.
-- Arguments: $1 batch_id, $2 states, without unsent, $3 instance_id before which to continue, $4 limit.
-- Result: instances by id, descending. The index has them by retries, of which few values exist.
WITH RECURSIVE kinds (state, least) AS (
    SELECT wanted.state, 1
    FROM unnest($2::text[]) AS wanted (state)
    UNION ALL
    SELECT kinds.state, following.least
    FROM kinds
    CROSS JOIN LATERAL (
        SELECT -listed.retries AS least
        FROM finished_instance AS listed
        WHERE listed.batch_ended_at = (SELECT ended_at FROM batch WHERE batch_id = $1)
            AND listed.batch_id = $1
            AND listed.state = kinds.state
            AND -listed.retries < kinds.least
        ORDER BY -listed.retries DESC, listed.instance_id DESC
        LIMIT 1
    ) AS following
)
SELECT
    one.instance_id, one.job_id, one.state, one.retries, false AS urgent, one.tight, one.created_at, one.host_id, one.sent_at,
    one.due_at, one.reported_at, one.reason, one.copied_because
FROM kinds
CROSS JOIN LATERAL (
    SELECT *
    FROM finished_instance AS listed
    WHERE listed.batch_ended_at = (SELECT ended_at FROM batch WHERE batch_id = $1)
            AND listed.batch_id = $1
            AND listed.state = kinds.state
        AND (-listed.retries, listed.instance_id) < (kinds.least, $3::bigint)
        AND -listed.retries >= kinds.least
    ORDER BY -listed.retries DESC, listed.instance_id DESC
    LIMIT $4
) AS one
ORDER BY one.instance_id DESC
LIMIT $4;


-- name: host_names
-- Purpose: return the names that hosts' clients report.
-- Arguments: $1 host_ids.
-- Result: host_id and domain_name.
SELECT host_id, domain_name FROM host WHERE host_id = ANY($1::int[]);


-- name: hosts_looked_at
-- Purpose: return where a page of the newest hosts ends.
-- Arguments: $1 host_id before which it begins, $2 how many are read, less one.
-- Result: host_id of the last one, and of the one after it; less at the end of all hosts.
SELECT host_id FROM host WHERE host_id < $1 ORDER BY host_id DESC OFFSET $2 LIMIT 2;


-- name: hosts_named
-- Purpose: return the first hosts whose clients report a name. Reads every host.
-- Arguments: $1 name in upper or lower case, $2 limit.
-- Result: host_id, ascending.
SELECT host_id FROM host WHERE lower(domain_name) = lower($1::text) ORDER BY host_id LIMIT $2;


-- name: hosts_of_email
-- Purpose: return the hosts of the volunteer with an e-mail address, newest first.
-- Arguments: $1 e-mail in lower case, $2 host_id before which to continue, $3 limit, $4 part of a platform in lower case,
--   $5 label (empty: any).
-- Result: host_id, descending.
SELECT host.host_id
FROM host
WHERE host.volunteer_id = (SELECT volunteer.volunteer_id FROM volunteer WHERE volunteer.email = $1)
    AND host.host_id + 0 < $2  -- not by the key: that would scan all hosts
    AND ($4::text = '' OR strpos(lower(array_to_string(host.platforms, ' ')), $4) > 0)
    AND ($5::text = '' OR $5 = ANY(host.labels))
ORDER BY host.host_id + 0 DESC
LIMIT $3;


-- name: instances_of_host
-- Purpose: return a host's instances, latest dispatch first. Those of the history are left out.
-- Arguments: $1 host_id, $2 volunteer_id of the host, $3 and $4 sent_at and instance_id after which to continue, $5 and $6 those of
--   the last one that is read, $7 state or null for all, $8 limit.
-- Result: instances with the name of their app.
SELECT
    own.instance_id, own.job_id, own.batch_id, own.state, own.sent_at, own.due_at, own.reported_at, own.est_runtime_s,
    own.elapsed_s, own.tight, own.reason, own.credit, app.name AS app_name
FROM (
    (
        SELECT *
        FROM instance
        WHERE instance.host_id = $1
            AND instance.state = 'in_progress'
            AND ($7::text IS NULL OR instance.state = $7)
            AND (instance.sent_at, instance.instance_id) < ($3, $4::bigint)
            AND (instance.sent_at, instance.instance_id) >= ($5, $6::bigint)
        ORDER BY instance.sent_at DESC, instance.instance_id DESC
        LIMIT $8
    )
    UNION ALL
    (
        SELECT *
        FROM instance
        WHERE instance.volunteer_id = $2
            AND instance.host_id = $1
            AND instance.state NOT IN ('unsent', 'in_progress', 'cancelled')
            AND ($7::text IS NULL OR instance.state = $7)
            AND (instance.sent_at, instance.instance_id) < ($3, $4::bigint)
            AND (instance.sent_at, instance.instance_id) >= ($5, $6::bigint)
        ORDER BY instance.sent_at DESC, instance.instance_id DESC
        LIMIT $8
    )
) AS own
JOIN batch ON batch.batch_id = own.batch_id
JOIN app ON app.app_id = batch.app_id
ORDER BY own.sent_at DESC, own.instance_id DESC
LIMIT $8;


-- name: listed_hosts
-- Purpose: return hosts for lists.
-- Arguments: $1 host_ids.
-- Result: hosts by id, with in_progress, credit (null: none), and n_valid, n_error and n_timeout over their app versions.
SELECT
    host.*,
    (SELECT count(*) FROM instance WHERE instance.host_id = host.host_id AND instance.state = 'in_progress') AS in_progress,
    (SELECT credit FROM credit WHERE credit.kind = 'host' AND credit.id = host.host_id) AS credit,
    done.n_valid, done.n_error, done.n_timeout
FROM host
CROSS JOIN LATERAL (
    SELECT
        coalesce(sum(hav.n_valid), 0)::bigint AS n_valid,
        coalesce(sum(hav.n_error), 0)::bigint AS n_error,
        coalesce(sum(hav.n_timeout), 0)::bigint AS n_timeout
    FROM host_app_version AS hav
    WHERE hav.host_id = host.host_id
) AS done
WHERE host.host_id = ANY($1::int[])
ORDER BY host.host_id;


-- name: restricted_hosts
-- Purpose: return the hosts that are banned or limited, or whose volunteer is. Materialised: the hosts are found by their
--   restrictions, not among all those before $1.
-- Arguments: $1 host_id before which to continue, $2 limit.
-- Result: host_id, newest first.
WITH restricted AS MATERIALIZED (
    SELECT host.host_id
    FROM restriction JOIN host ON host.host_id = restriction.name::int
    WHERE restriction.kind = 'host'
    UNION
    SELECT host.host_id
    FROM restriction JOIN host ON host.volunteer_id = restriction.name::int
    WHERE restriction.kind = 'volunteer'
)
SELECT host_id FROM restricted
WHERE host_id < $1
ORDER BY host_id DESC
LIMIT $2;


-- name: results_looked_at
-- Purpose: how far a look at a volunteer's last results comes.
-- Arguments: $1 volunteer_id, $2 and $3 sent_at and instance_id behind which it begins, $4 how many are read, less one.
-- Result: sent_at and instance_id of the last one, and of the one after it; less at the end of all.
SELECT sent_at, instance_id
FROM instance
WHERE volunteer_id = $1
    AND state NOT IN ('unsent', 'in_progress', 'cancelled')
    AND (sent_at, instance_id) < ($2, $3::bigint)
ORDER BY sent_at DESC, instance_id DESC
OFFSET $4
LIMIT 2;


-- name: selected_hosts
-- Purpose: hosts on a platform or with a label, that have not called since an instant, or that have no work, newest first.
-- Arguments: $1 host_id before which to continue, $2 host_id of the last one that is read, $3 the instant (null: any), $4 limit,
--   $5 part of a platform in lower case, $6 label (empty: any), $7 instant since which they have called although nothing is in
--   progress (null: any).
-- Result: host_id, descending.
SELECT host_id
FROM host
WHERE
    host_id < $1 AND host_id >= $2
    AND ($3::double precision IS NULL OR last_rpc_at < $3)
    AND ($5::text = '' OR strpos(lower(array_to_string(platforms, ' ')), $5) > 0)
    AND ($6::text = '' OR $6 = ANY(labels))
    AND (
        $7::double precision IS NULL
        OR last_rpc_at >= $7
        AND NOT EXISTS (SELECT FROM instance WHERE instance.host_id = host.host_id AND instance.state = 'in_progress')
    )
ORDER BY host_id DESC
LIMIT $4;


-- name: sorted_hosts
-- Purpose: return selected hosts in some order. It reads all hosts, and with the last three keys their counts.
-- Arguments: $1 sort key (id, last_contact, cpus, memory, availability, in_progress, valid, failed), $2 1 or -1 for descending, $3 key and $4 host_id after which to
--   continue (-infinity and 0 for the start), $5 limit, $6 instant before which they called last (null: any), $7 part of a
--   platform in lower case, $8 label, $9 e-mail of the volunteer in lower case (empty: any), $10 text in lower case (empty: any):
--   the host's or the volunteer's name contains it, or it is the host's address or the volunteer's e-mail address, $11 as $7 of
--   selected_hosts.
-- Result: host_id and key, in order.
SELECT keyed.host_id, keyed.key
FROM (
    SELECT
        host_id,
        $2::int * CASE $1::text
            WHEN 'last_contact' THEN last_rpc_at
            WHEN 'cpus' THEN ncpus * flop_per_s
            WHEN 'memory' THEN ram_bytes
            WHEN 'availability' THEN on_fraction * active_fraction
            WHEN 'in_progress' THEN (
                SELECT count(*) FROM instance WHERE instance.host_id = host.host_id AND instance.state = 'in_progress'
            )
            WHEN 'valid' THEN (
                SELECT coalesce(sum(hav.n_valid), 0) FROM host_app_version AS hav WHERE hav.host_id = host.host_id
            )
            WHEN 'failed' THEN (
                SELECT coalesce(sum(hav.n_error + hav.n_timeout), 0)
                FROM host_app_version AS hav WHERE hav.host_id = host.host_id
            )
            ELSE 0.0
        END AS key
    FROM host
    WHERE
        ($6::double precision IS NULL OR last_rpc_at < $6)
        AND ($7::text = '' OR strpos(lower(array_to_string(platforms, ' ')), $7) > 0)
        AND ($8::text = '' OR $8 = ANY(labels))
        AND ($9::text = '' OR volunteer_id = (SELECT volunteer.volunteer_id FROM volunteer WHERE volunteer.email = $9))
        AND (
            $10::text = '' OR strpos(lower(domain_name), $10) > 0 OR network = $10
            OR volunteer_id = ANY(ARRAY(
                SELECT volunteer.volunteer_id FROM volunteer
                WHERE $10 <> '' AND (volunteer.email = $10 OR strpos(lower(volunteer.name), $10) > 0)
            ))
        )
        AND (
            $11::double precision IS NULL
            OR last_rpc_at >= $11
            AND NOT EXISTS (SELECT FROM instance WHERE instance.host_id = host.host_id AND instance.state = 'in_progress')
        )
) AS keyed
WHERE (keyed.key, $2::int * keyed.host_id) > ($3::double precision, $2::int * $4::int)
ORDER BY keyed.key, $2::int * keyed.host_id
LIMIT $5;


-- name: slow_hosts
-- Purpose: (host, app version) in the slowest tenth of their population by the last full ranking, the slowest first.
-- Arguments: $1 to $3 x, host_id and app_version_id after which to continue, $4 limit.
-- Result: host_id, app_version_id, x; relative, the turnaround over the usual one as of now, null while there is no sample.
SELECT
    slow.host_id, slow.app_version_id, slow.x,
    CASE WHEN hav.relaxed_n > 0 THEN exp(hav.relaxed_sum / hav.relaxed_n) END AS relative
FROM (
    SELECT host_id, app_version_id, x
    FROM host_percentile
    WHERE generation = (
            SELECT generation FROM percentile_generation
            WHERE complete AND with_percentiles ORDER BY generation DESC LIMIT 1
        )
        AND x < 0.1  -- as in the index
        AND (x, host_id, app_version_id) > ($1::real, $2::int, $3::int)
    ORDER BY x, host_id, app_version_id
    LIMIT $4
) AS slow
LEFT JOIN host_app_version AS hav ON hav.host_id = slow.host_id AND hav.app_version_id = slow.app_version_id
ORDER BY slow.x, slow.host_id, slow.app_version_id;

-- name: held_of_volunteer
-- Purpose: what a volunteer's computers have in progress.
-- Arguments: $1 volunteer_id, $2 host_id or null for all, $3 limit.
-- Result: instances by due_at and id, with the name of their app.
SELECT
    instance.instance_id, instance.job_id, instance.batch_id, instance.host_id, instance.sent_at, instance.due_at,
    instance.est_runtime_s, instance.tight, app.name AS app_name
FROM host
JOIN instance ON instance.host_id = host.host_id AND instance.state = 'in_progress'
JOIN batch ON batch.batch_id = instance.batch_id
JOIN app ON app.app_id = batch.app_id
WHERE host.volunteer_id = $1 AND ($2::int IS NULL OR host.host_id = $2)
ORDER BY instance.due_at, instance.instance_id
LIMIT $3;


-- name: host_of_volunteer
-- Purpose: one of a volunteer's computers.
-- Arguments: $1 volunteer_id, $2 host_id.
-- Result: the host with in_progress and credit (null: none); no row when there is none, or it is another volunteer's.
SELECT
    host.*,
    (SELECT count(*) FROM instance WHERE instance.host_id = host.host_id AND instance.state = 'in_progress') AS in_progress,
    (SELECT credit FROM credit WHERE credit.kind = 'host' AND credit.id = host.host_id) AS credit
FROM host
WHERE host.host_id = $2::bigint AND host.volunteer_id + 0 = $1;


-- name: hosts_of_volunteer
-- Purpose: return a volunteer's computers, newest first, with their instances in progress.
-- Arguments: $1 volunteer_id, $2 host_id before which to continue, $3 limit.
-- Result: hosts by id, descending, with in_progress and credit (null: none).
SELECT
    host.*,
    (SELECT count(*) FROM instance WHERE instance.host_id = host.host_id AND instance.state = 'in_progress') AS in_progress,
    (SELECT credit FROM credit WHERE credit.kind = 'host' AND credit.id = host.host_id) AS credit
FROM (
    SELECT *
    FROM host AS own
    WHERE own.volunteer_id = $1 AND own.host_id + 0 < $2  -- not by the key: that would scan all hosts
    ORDER BY own.host_id + 0 DESC
    LIMIT $3
) AS host
ORDER BY host.host_id DESC;


-- name: results_of_volunteer
-- Purpose: return a volunteer's finished results, latest dispatch first. Those of the history are left out.
-- Arguments: $1 volunteer_id, $2 and $3 sent_at and instance_id after which to continue, $4 how many are read, $5 host_id or
--   null for all, $6 states or null for all, $7 limit.
-- Result: instances with the name of their app.
SELECT
    own.instance_id, own.batch_id, own.host_id, own.state, own.sent_at, own.due_at, own.reported_at, own.elapsed_s, own.reason,
    own.credit, app.name AS app_name
FROM (
    SELECT *
    FROM (
        SELECT *
        FROM instance
        WHERE instance.volunteer_id = $1
            AND instance.state NOT IN ('unsent', 'in_progress', 'cancelled')
            AND (instance.sent_at, instance.instance_id) < ($2, $3::bigint)
        ORDER BY instance.sent_at DESC, instance.instance_id DESC
        LIMIT $4
    ) AS looked_at
    WHERE ($5::int IS NULL OR looked_at.host_id = $5) AND ($6::text[] IS NULL OR looked_at.state = ANY($6))
    ORDER BY looked_at.sent_at DESC, looked_at.instance_id DESC
    LIMIT $7
) AS own
JOIN batch ON batch.batch_id = own.batch_id
JOIN app ON app.app_id = batch.app_id
ORDER BY own.sent_at DESC, own.instance_id DESC;


-- name: totals_of_volunteer
-- Purpose: return the totals of all of a volunteer's computers.
-- Arguments: $1 volunteer_id.
-- Result: one row of counts, and the volunteer's credit (null: none).
SELECT
    (SELECT credit FROM credit WHERE credit.kind = 'volunteer' AND credit.id = $1) AS credit,
    (SELECT count(*) FROM host WHERE host.volunteer_id = $1) AS hosts,
    (
        SELECT count(*)
        FROM host
        JOIN instance ON instance.host_id = host.host_id AND instance.state = 'in_progress'
        WHERE host.volunteer_id = $1
    ) AS in_progress,
    coalesce(sum(hav.n_valid), 0) AS valid, coalesce(sum(hav.n_error), 0) AS failed, coalesce(sum(hav.n_timeout), 0) AS late
FROM host
JOIN host_app_version AS hav ON hav.host_id = host.host_id
WHERE host.volunteer_id = $1;
