-- name: count_arrival
-- Purpose: count one more new host on a day.
-- Arguments: $1 day, $2 key that it counts under, $3 limit per day.
-- Result: hosts, this one included; no row if it has reached the limit.
INSERT INTO host_arrival (day, who, hosts)
VALUES ($1, $2, 1)
ON CONFLICT (day, who) DO UPDATE SET hosts = host_arrival.hosts + 1
WHERE host_arrival.hosts < $3
RETURNING hosts;


-- name: forget_arrivals
-- Purpose: delete the counts of new hosts of past days.
-- Arguments: $1 day before which.
-- Result: none.
DELETE FROM host_arrival WHERE day < $1;


-- name: fresh_instances
-- Purpose: return the next fresh instances of several (batch, shard) ranges, each after its cursor.
-- Arguments: $1 batch_ids, $2 shards, $3 instance_ids after which to start, $4 limits (arrays, one entry per range).
-- Result: candidates in the order of the ranges, ascending id within one; siblings only where a job has several copies.
SELECT
    waiting.instance_id, waiting.job_id, waiting.batch_id, waiting.job_class_id, waiting.retries, job.hr_class, job.copies,
    false AS sibling_returned, siblings.hosts AS sibling_hosts, siblings.volunteers AS sibling_volunteers
FROM unnest($1::bigint[], $2::smallint[], $3::bigint[], $4::int[]) WITH ORDINALITY
    AS wanted (batch_id, shard, after_instance_id, most, position)
CROSS JOIN LATERAL (
    SELECT instance_id, job_id, batch_id, job_class_id, retries
    FROM instance
    WHERE instance.batch_id = wanted.batch_id
        AND instance.shard = wanted.shard
        AND instance.instance_id > wanted.after_instance_id
        AND instance.state = 'unsent'
        AND NOT instance.urgent
    ORDER BY instance.instance_id
    LIMIT wanted.most
) AS waiting
JOIN job ON job.job_id = waiting.job_id
JOIN job_class ON job_class.job_class_id = waiting.job_class_id
CROSS JOIN LATERAL (
    SELECT
        coalesce(array_agg(sibling.host_id ORDER BY sibling.host_id), '{}') AS hosts,
        coalesce(array_agg(sibling.volunteer_id ORDER BY sibling.volunteer_id), '{}') AS volunteers
    FROM instance AS sibling
    WHERE sibling.job_id = waiting.job_id AND sibling.host_id IS NOT NULL
        AND (job_class.quorum > 1 OR job.copies > 1)
) AS siblings
ORDER BY wanted.position, waiting.instance_id;


-- name: lock_drained
-- Purpose: lock batches that seem to have nothing unsent, so that no transaction adds to them; locked ones are
--   skipped.
-- Arguments: $1 batch_ids.
-- Result: batch_id, ascending.
SELECT batch_id FROM batch WHERE batch_id = ANY($1::bigint[]) ORDER BY batch_id FOR UPDATE SKIP LOCKED;


-- name: mark_again
-- Purpose: mark the active batches that wait without a mark; locked in key order, like all transactions that add to
--   them.
-- Arguments: none.
-- Result: batch_id, in no order.
WITH lost AS MATERIALIZED (
    SELECT batch_id
    FROM batch
    WHERE state = 'active'
        AND NOT waiting
        AND (SELECT sum(batch_count.unsent) FROM batch_count WHERE batch_count.batch_id = batch.batch_id) > 0
    ORDER BY batch_id
    FOR NO KEY UPDATE
)
UPDATE batch SET waiting = true
FROM lost
WHERE batch.batch_id = lost.batch_id
RETURNING batch.batch_id;


-- name: paused_or_blocked
-- Purpose: return the first active batches that may have unsent instances and are paused or over a limit.
-- Arguments: $1 limit.
-- Result: rows of batch_with_counts by (order_tier, order_key, batch_id), with unsent instances. Reads the keys of all
--   active batches, and counts only of those.
SELECT batch_with_counts.*
FROM (
    SELECT batch_id
    FROM batch
    WHERE state = 'active' AND waiting
        AND (
            hold IS NOT NULL
            OR batch_id IN (SELECT name::bigint FROM restriction WHERE kind = 'batch')
            OR app_id IN (SELECT name::int FROM restriction WHERE kind = 'app')
            OR queue IN (SELECT name FROM restriction WHERE kind = 'queue')
        )
    ORDER BY order_tier, order_key, batch_id
    LIMIT $1
) AS halted
JOIN batch_with_counts ON batch_with_counts.batch_id = halted.batch_id
WHERE batch_with_counts.unsent > 0
ORDER BY batch_with_counts.order_tier, batch_with_counts.order_key, batch_with_counts.batch_id;


-- name: ready_afap_or_due
-- Purpose: return those of the first ready batches (`ready_batches`) that have fresh unsent instances and are AFAP or have a deadline.
-- Arguments: $1 number of ready batches, $2 app_ids.
-- Result: as of ready_batches.
SELECT batch_with_counts.*
FROM (
    SELECT batch_id, qos, deadline_at
    FROM batch
    WHERE state = 'active' AND waiting AND hold IS NULL
        AND batch_id NOT IN (SELECT name::bigint FROM restriction WHERE kind = 'batch')
        AND app_id NOT IN (SELECT name::int FROM restriction WHERE kind = 'app')
        AND queue NOT IN (SELECT name FROM restriction WHERE kind = 'queue')
        AND app_id = ANY($2::int[])
    ORDER BY order_tier, order_key, batch_id
    LIMIT $1
) AS first
JOIN batch_with_counts ON batch_with_counts.batch_id = first.batch_id
WHERE
    (first.qos = 'afap' OR first.deadline_at IS NOT NULL)
    AND EXISTS (
        SELECT FROM instance
        WHERE instance.batch_id = first.batch_id AND instance.state = 'unsent' AND NOT instance.urgent
    )
ORDER BY batch_with_counts.order_tier, batch_with_counts.order_key, batch_with_counts.batch_id;


-- name: ready_batches
-- Purpose: return the first active, unblocked batches that may have unsent instances and are not paused.
-- Arguments: $1 limit, $2 app_ids, or null for all.
-- Result: rows of batch_with_counts by (order_tier, order_key, batch_id); some may no longer have unsent instances.
-- Reads only as many batches as requested, however many are active.
SELECT batch_with_counts.*
FROM (
    SELECT batch_id
    FROM batch
    WHERE state = 'active' AND waiting AND hold IS NULL
        AND batch_id NOT IN (SELECT name::bigint FROM restriction WHERE kind = 'batch')
        AND app_id NOT IN (SELECT name::int FROM restriction WHERE kind = 'app')
        AND queue NOT IN (SELECT name FROM restriction WHERE kind = 'queue')
        AND ($2::int[] IS NULL OR app_id = ANY($2::int[]))
    ORDER BY order_tier, order_key, batch_id
    LIMIT $1
) AS first
JOIN batch_with_counts ON batch_with_counts.batch_id = first.batch_id
ORDER BY batch_with_counts.order_tier, batch_with_counts.order_key, batch_with_counts.batch_id;


-- name: still_unsent
-- Purpose: return those of some instances that are still unsent.
-- Arguments: $1 instance_ids.
-- Result: instance_id, ascending.
SELECT instance_id
FROM instance
WHERE instance_id = ANY($1::bigint[]) AND state = 'unsent'
ORDER BY instance_id;


-- name: tail_instances
-- Purpose: return the first fresh instances of several batches over all shards.
-- Arguments: $1 batch_ids, $2 how many of each.
-- Result: candidates in the order of the batches, by shard and ascending id within one; siblings only where a job has
--   several copies.
SELECT
    waiting.instance_id, waiting.job_id, waiting.batch_id, waiting.job_class_id, waiting.retries, job.hr_class, job.copies,
    false AS sibling_returned, siblings.hosts AS sibling_hosts, siblings.volunteers AS sibling_volunteers
FROM unnest($1::bigint[]) WITH ORDINALITY AS wanted (batch_id, position)
CROSS JOIN LATERAL (
    SELECT instance_id, job_id, batch_id, job_class_id, retries, shard
    FROM instance
    WHERE instance.batch_id = wanted.batch_id AND instance.state = 'unsent' AND NOT instance.urgent
    ORDER BY instance.shard, instance.instance_id
    LIMIT $2
) AS waiting
JOIN job ON job.job_id = waiting.job_id
JOIN job_class ON job_class.job_class_id = waiting.job_class_id
CROSS JOIN LATERAL (
    SELECT
        coalesce(array_agg(sibling.host_id ORDER BY sibling.host_id), '{}') AS hosts,
        coalesce(array_agg(sibling.volunteer_id ORDER BY sibling.volunteer_id), '{}') AS volunteers
    FROM instance AS sibling
    WHERE sibling.job_id = waiting.job_id AND sibling.host_id IS NOT NULL
        AND (job_class.quorum > 1 OR job.copies > 1)
) AS siblings
ORDER BY wanted.position, waiting.shard, waiting.instance_id;


-- name: unmark_drained
-- Purpose: remove the marks of those of some locked batches that have nothing unsent. It is a separate statement
--   after the lock, so that it sees what was added before.
-- Arguments: $1 batch_ids.
-- Result: none.
UPDATE batch SET waiting = false
WHERE batch_id = ANY($1::bigint[])
    AND waiting
    AND (SELECT coalesce(sum(batch_count.unsent), 0) FROM batch_count WHERE batch_count.batch_id = batch.batch_id) <= 0;


-- name: urgent_instances
-- Purpose: return the first urgent instances of several batches.
-- Arguments: $1 batch_ids, $2 how many of each.
-- Result: candidates in the order of the batches, retries descending and ascending id within one.
SELECT
    waiting.instance_id, waiting.job_id, waiting.batch_id, waiting.job_class_id, waiting.retries, job.hr_class, job.copies,
    siblings.returned AS sibling_returned, siblings.hosts AS sibling_hosts, siblings.volunteers AS sibling_volunteers
FROM unnest($1::bigint[]) WITH ORDINALITY AS wanted (batch_id, position)
CROSS JOIN LATERAL (
    SELECT instance_id, job_id, batch_id, job_class_id, retries
    FROM instance
    WHERE instance.batch_id = wanted.batch_id AND instance.state = 'unsent' AND instance.urgent
    ORDER BY instance.retries DESC, instance.instance_id
    LIMIT $2
) AS waiting
JOIN job ON job.job_id = waiting.job_id
CROSS JOIN LATERAL (
    SELECT
        coalesce(array_agg(sibling.host_id ORDER BY sibling.host_id), '{}') AS hosts,
        coalesce(array_agg(sibling.volunteer_id ORDER BY sibling.volunteer_id), '{}') AS volunteers,
        coalesce(bool_or(sibling.state IN ('reported', 'inconclusive')), false) AS returned
    FROM instance AS sibling
    WHERE sibling.job_id = waiting.job_id AND sibling.host_id IS NOT NULL
) AS siblings
ORDER BY wanted.position, waiting.retries DESC, waiting.instance_id;


-- name: work_before
-- Purpose: count the ready batches (`ready_batches`) with fresh unsent instances before a place in the order.
-- Arguments: $1 order_tier, $2 order_key and $3 batch_id of the place, $4 number of batches to read,
--   $5 app_ids, $6 batch_ids to leave out, $7 number of batches to name.
-- Result: one row: found, the batches that were read; batches, those with fresh ones; unsent, all theirs; first, the first
--   batch_ids.
SELECT
    count(*)::int AS found,
    (array_agg(first.batch_id ORDER BY first.number) FILTER (WHERE total.has_fresh))[1:$7] AS first,
    count(*) FILTER (WHERE total.has_fresh)::int AS batches,
    coalesce(sum(total.unsent) FILTER (WHERE total.has_fresh), 0)::bigint AS unsent
FROM (
    SELECT batch_id, row_number() OVER (ORDER BY order_tier, order_key, batch_id) AS number
    FROM batch
    WHERE state = 'active' AND waiting AND hold IS NULL
        AND batch_id NOT IN (SELECT name::bigint FROM restriction WHERE kind = 'batch')
        AND app_id NOT IN (SELECT name::int FROM restriction WHERE kind = 'app')
        AND queue NOT IN (SELECT name FROM restriction WHERE kind = 'queue')
        AND app_id = ANY($5::int[])
        AND batch_id NOT IN (SELECT unnest($6::bigint[]))
        AND (order_tier, order_key, batch_id) < ($1::int, $2::double precision, $3::bigint)
    ORDER BY order_tier, order_key, batch_id
    LIMIT $4
) AS first
CROSS JOIN LATERAL (
    SELECT
        coalesce(sum(batch_count.unsent), 0) AS unsent,
        EXISTS (
            SELECT FROM instance
            WHERE instance.batch_id = first.batch_id AND instance.state = 'unsent' AND NOT instance.urgent
        ) AS has_fresh
    FROM batch_count
    WHERE batch_count.batch_id = first.batch_id
) AS total;
