-- name: active_totals
-- Purpose: what is to do: the counters of active batches together, by app and quality of service.
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
-- Purpose: what some batches are called.
-- Arguments: $1 batch_ids (array).
-- Result: batch_id and name, by id.
SELECT batch_id, name FROM batch WHERE batch_id = ANY($1::bigint[]) ORDER BY batch_id;


-- name: batches_by_deadline
-- Purpose: active batches with a deadline that were chosen, the earliest first, with the names of what they belong to.
-- Arguments: $1 deadline_at and $2 batch_id behind which to go on, $3 limit, $4 qos, $5 app_id, $6 submitter_id
-- (null: any), $7 text.
-- Result: rows of batch_with_counts with app_name, submitter_name and account_name.
SELECT
    batch_with_counts.*, app.name AS app_name, submitter.name AS submitter_name, account.name AS account_name
FROM (
    SELECT batch_id
    FROM batch
    WHERE
        state = 'active'
        AND deadline_at IS NOT NULL
        AND (deadline_at, batch_id) > ($1::double precision, $2::bigint)
        AND ($4::text IS NULL OR qos = $4)
        AND ($5::int IS NULL OR app_id = $5)
        AND ($6::int IS NULL OR submitter_id = $6)
        AND strpos(lower(name), $7) > 0
    ORDER BY deadline_at, batch_id
    LIMIT $3
) AS first
JOIN batch_with_counts ON batch_with_counts.batch_id = first.batch_id
JOIN app ON app.app_id = batch_with_counts.app_id
JOIN submitter ON submitter.submitter_id = batch_with_counts.submitter_id
JOIN account ON account.account_id = batch_with_counts.account_id
ORDER BY batch_with_counts.deadline_at, batch_with_counts.batch_id;


-- name: batches_in_queue
-- Purpose: active batches that were chosen, in their order, with the names of what they belong to.
-- Arguments: $1 order_tier, $2 order_key and $3 batch_id behind which to go on, $4 limit, $5 qos, $6 app_id,
-- $7 submitter_id (null: any), $8 text.
-- Result: rows of batch_with_counts with app_name, submitter_name and account_name.
SELECT
    batch_with_counts.*, app.name AS app_name, submitter.name AS submitter_name, account.name AS account_name
FROM (
    SELECT batch_id
    FROM batch
    WHERE
        state = 'active'
        AND (order_tier, order_key, batch_id) > ($1::int, $2::double precision, $3::bigint)
        AND ($5::text IS NULL OR qos = $5)
        AND ($6::int IS NULL OR app_id = $6)
        AND ($7::int IS NULL OR submitter_id = $7)
        AND strpos(lower(name), $8) > 0
    ORDER BY order_tier, order_key, batch_id
    LIMIT $4
) AS first
JOIN batch_with_counts ON batch_with_counts.batch_id = first.batch_id
JOIN app ON app.app_id = batch_with_counts.app_id
JOIN submitter ON submitter.submitter_id = batch_with_counts.submitter_id
JOIN account ON account.account_id = batch_with_counts.account_id
ORDER BY batch_with_counts.order_tier, batch_with_counts.order_key, batch_with_counts.batch_id;


-- name: batches_newest
-- Purpose: batches that were chosen, newest first, with the names of what they belong to.
-- Arguments: $1 batch_id before which to go on, $2 limit, $3 state, $4 qos, $5 app_id, $6 submitter_id (null: any), $7 text.
-- Result: rows of batch_with_counts with app_name, submitter_name and account_name.
SELECT
    batch_with_counts.*, app.name AS app_name, submitter.name AS submitter_name, account.name AS account_name
FROM (
    SELECT batch_id
    FROM batch
    WHERE
        batch_id < $1
        AND ($3::text IS NULL OR state = $3)
        AND ($4::text IS NULL OR qos = $4)
        AND ($5::int IS NULL OR app_id = $5)
        AND ($6::int IS NULL OR submitter_id = $6)
        AND strpos(lower(name), $7) > 0
    ORDER BY batch_id DESC
    LIMIT $2
) AS first
JOIN batch_with_counts ON batch_with_counts.batch_id = first.batch_id
JOIN app ON app.app_id = batch_with_counts.app_id
JOIN submitter ON submitter.submitter_id = batch_with_counts.submitter_id
JOIN account ON account.account_id = batch_with_counts.account_id
ORDER BY batch_with_counts.batch_id DESC;


-- name: finished_instances_of_batch
-- Purpose: instances of a batch in some states that are in the history, retries first.
-- Arguments: $1 batch_id, $2 states, $3 minus the retries and $4 instance_id behind which to go on (-32768 and 0 for the start),
--   $5 limit.
-- Result: instances by retries (descending) and id.
SELECT
    one.instance_id, one.job_id, one.state, one.retries, false AS urgent, one.tight, one.created_at, one.host_id, one.sent_at,
    one.due_at, one.reported_at, one.reason
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


-- name: held_instances
-- Purpose: what a host has in progress.
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
-- Purpose: instances of a batch in some states, retries first. Those of the history are in finished_instances_of_batch.
-- Arguments: $1 batch_id, $2 states, $3 minus the retries and $4 instance_id behind which to go on (-32768 and 0 for the start),
--   $5 limit.
-- Result: instances by retries (descending) and id. What is neither sent nor urgent has no retries and lies in 64 shards.
SELECT
    instance.instance_id, instance.job_id, instance.state, instance.retries, instance.urgent AND instance.state = 'unsent' AS urgent,
    instance.tight, instance.created_at, instance.host_id, instance.sent_at, instance.due_at, instance.reported_at, instance.reason
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
