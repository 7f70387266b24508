-- name: add_usage_days
-- Purpose: add to a day's usage in the history.
-- Arguments: $1 start of the day, then arrays by key: $2 submitter_ids, $3 account_ids, $4 instances, $5 flop, $6 cpu_s,
--   $7 memory_byte_s, $8 gpu_s, $9 used_su.
-- Result: none.
INSERT INTO usage_history AS old (
    unit, starts_at, submitter_id, account_id, instances, flop, cpu_s, memory_byte_s, gpu_s, used_su
)
SELECT 'day', $1::double precision, used.*
FROM unnest(
    $2::int[], $3::int[], $4::bigint[], $5::double precision[], $6::double precision[], $7::double precision[],
    $8::double precision[], $9::double precision[]
) AS used (submitter_id, account_id, instances, flop, cpu_s, memory_byte_s, gpu_s, used_su)
ON CONFLICT (unit, starts_at, submitter_id, account_id) DO UPDATE SET
    instances = old.instances + excluded.instances, flop = old.flop + excluded.flop, cpu_s = old.cpu_s + excluded.cpu_s,
    memory_byte_s = old.memory_byte_s + excluded.memory_byte_s, gpu_s = old.gpu_s + excluded.gpu_s,
    used_su = old.used_su + excluded.used_su;


-- name: add_usage_windows
-- Purpose: add to submitters' usage per time window.
-- Arguments: $1 submitter_ids, $2 account_ids, $3 levels, $4 starts_at, $5 length_s, $6 flop (arrays).
-- Result: none.
INSERT INTO usage_window AS old (submitter_id, account_id, level, starts_at, length_s, flop)
SELECT *
FROM unnest(
    $1::int[], $2::int[], $3::text[], $4::double precision[], $5::double precision[], $6::double precision[]
) AS used (submitter_id, account_id, level, starts_at, length_s, flop)
ORDER BY submitter_id, account_id, level, starts_at, length_s
ON CONFLICT (submitter_id, account_id, level, starts_at, length_s) DO UPDATE SET flop = old.flop + excluded.flop;


-- name: batches_to_order
-- Purpose: return every active batch, and every other one with charges still due.
-- Arguments: none.
-- Result: rows of batch_with_counts by batch_id with refunded_s, with what the ordering noted of each (columns noted_*, null where it noted
--   nothing yet), whether it is explained, what its jobs ask for: the most of its classes, and the mean estimate, and
--   the batches that it waits for: awaited (not ended), unmet (ended without all jobs valid, or purged), or null.
SELECT
    batch_with_counts.*,
    (SELECT refunded_s FROM batch WHERE batch.batch_id = wanted.batch_id) AS refunded_s,
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
    EXISTS (SELECT FROM batch_breakdown WHERE batch_breakdown.batch_id = wanted.batch_id) AS explained,
    class.cores, class.memory_bytes, class.disk_bytes, class.job_flop, class.max_errors,
    before.awaited, before.unmet
FROM (
    SELECT batch_id, bool_or(waits) AS waits
    FROM (
        SELECT batch_id, after_ok <> '{}' OR after_any <> '{}' AS waits FROM batch WHERE state = 'active'
        UNION ALL
        SELECT batch_id, false FROM batch_order
    ) AS every
    GROUP BY batch_id
) AS wanted
JOIN batch_with_counts ON batch_with_counts.batch_id = wanted.batch_id
LEFT JOIN LATERAL (
    SELECT * FROM batch_order WHERE batch_order.batch_id = wanted.batch_id LIMIT 1  -- by its key, one after the other
) AS noted ON true
CROSS JOIN LATERAL (
    SELECT
        max(ncpus) AS cores, max(memory_bytes) AS memory_bytes, max(disk_bytes) AS disk_bytes,
        avg(fpops_est_flop) AS job_flop, min(max_errors) AS max_errors
    FROM job_class
    WHERE job_class.batch_id = wanted.batch_id
) AS class
LEFT JOIN LATERAL (
    SELECT
        array_agg(own.batch_id ORDER BY own.batch_id) FILTER (WHERE other.state = 'active') AS awaited,
        array_agg(own.batch_id ORDER BY own.batch_id) FILTER (
            WHERE own.ok AND other.state IS DISTINCT FROM 'active'
                AND (other.state IS DISTINCT FROM 'complete' OR other.jobs_failed > 0)
        ) AS unmet
    FROM (
        SELECT unnest(after_ok) AS batch_id, true AS ok FROM batch WHERE batch.batch_id = wanted.batch_id
        UNION ALL
        SELECT unnest(after_any), false FROM batch WHERE batch.batch_id = wanted.batch_id
    ) AS own
    LEFT JOIN batch_with_counts AS other ON other.batch_id = own.batch_id
) AS before ON wanted.waits
ORDER BY wanted.batch_id;


-- name: correct_logical_times
-- Purpose: charge submitters' logical times for the usage of ended batches. Skips submitters with a locked row, and
--   batches charged otherwise meanwhile; the next pass charges them.
-- Arguments: $1 batch_ids, $2 submitter_ids, $3 what each is charged, refunds taken off, $4 what is due, in
--   seconds (arrays).
-- Result: batch_id, of those that were charged.
WITH wanted AS (
    SELECT *
    FROM unnest($1::bigint[], $2::int[], $3::double precision[], $4::double precision[])
        AS wanted (batch_id, submitter_id, charged_s, due_s)
),
locked AS (
    SELECT submitter_id
    FROM submitter
    WHERE submitter_id = ANY($2::int[])
    ORDER BY submitter_id
    FOR NO KEY UPDATE SKIP LOCKED
),
changed AS (
    UPDATE batch SET refunded_s = batch.charged_s - wanted.due_s
    FROM wanted
    JOIN locked ON locked.submitter_id = wanted.submitter_id
    WHERE batch.batch_id = wanted.batch_id AND batch.charged_s - batch.refunded_s = wanted.charged_s
    RETURNING wanted.batch_id, wanted.submitter_id, wanted.due_s - wanted.charged_s AS moved_s
),
moved AS (
    UPDATE submitter SET logical_at = logical_at + whole.moved_s
    FROM (SELECT submitter_id, sum(moved_s) AS moved_s FROM changed GROUP BY submitter_id) AS whole
    WHERE submitter.submitter_id = whole.submitter_id
)
SELECT batch_id FROM changed ORDER BY batch_id;


-- name: count_ordering
-- Purpose: begin to write an ordering pass, unless another was written since the one it is based on.
-- Arguments: $1 serial it goes by, $2 now, $3 reference.
-- Result: the new serial; no row when it is too late.
UPDATE ordering SET serial = serial + 1, computed_at = $2, reference = $3::jsonb WHERE serial = $1
RETURNING serial;


-- name: drop_batch_orders
-- Purpose: delete the notes of ended batches without instances in progress.
-- Arguments: $1 batch_ids.
-- Result: none.
DELETE FROM batch_order WHERE batch_id = ANY($1::bigint[]);


-- name: drop_breakdowns
-- Purpose: delete the breakdowns of ended batches.
-- Arguments: $1 batch_ids.
-- Result: none.
DELETE FROM batch_breakdown WHERE batch_id = ANY($1::bigint[]);


-- name: drop_usage_windows
-- Purpose: delete windows that no setting uses any more.
-- Arguments: $1 instant before which they ended.
-- Result: none.
DELETE FROM usage_window WHERE starts_at + length_s < $1;


-- name: last_ordering
-- Purpose: return the last ordering pass.
-- Arguments: none.
-- Result: one row of ordering, with the largest host_id; 0 without hosts.
SELECT serial, computed_at, reference, (SELECT coalesce(max(host_id), 0) FROM host) AS newest_host_id FROM ordering;


-- name: lock_places
-- Purpose: lock batches to move them in the order; ended or locked ones are skipped.
-- Arguments: $1 batch_ids.
-- Result: batch_id, ascending.
SELECT batch_id
FROM batch
WHERE batch_id = ANY($1::bigint[]) AND ended_at IS NULL
ORDER BY batch_id
FOR NO KEY UPDATE SKIP LOCKED;


-- name: move_batches
-- Purpose: set the places of locked batches in the order, and the limits that block them.
-- Arguments: $1 batch_ids, $2 order_tier, $3 order_key, $4 hold or nulls, $5 sent_most or nulls, $6 unpaid,
--   $7 job_pe, $8 level for which the tier was computed, or nulls (arrays). A level that changed since keeps its tier.
-- Result: none.
UPDATE batch SET
    order_tier = CASE WHEN moved.level <> batch.level THEN batch.order_tier ELSE moved.order_tier END,
    order_key = moved.order_key, hold = moved.hold, sent_most = moved.sent_most,
    unpaid = moved.unpaid, job_pe = moved.job_pe
FROM unnest(
    $1::bigint[], $2::int[], $3::double precision[], $4::text[], $5::bigint[], $6::boolean[], $7::double precision[],
    $8::text[]
) AS moved (batch_id, order_tier, order_key, hold, sent_most, unpaid, job_pe, level)
WHERE batch.batch_id = moved.batch_id;


-- name: ordering_members
-- Purpose: return every submitter in each of its accounts, its own account first.
-- Arguments: none.
-- Result: submitter_id, name, account_id, shares, permissions, by submitter_id.
SELECT submitter_id, name, account_id, shares, permissions
FROM (
    SELECT submitter_id, name, account_id, shares, permissions, 0 AS place FROM submitter
    UNION ALL
    SELECT membership.submitter_id, submitter.name, membership.account_id, membership.shares, submitter.permissions, 1
    FROM membership
    JOIN submitter USING (submitter_id)
) AS member
ORDER BY submitter_id, place, account_id;


-- name: reference_host
-- Purpose: return the median host, resource by resource, the largest values, and the largest host_id.
-- Arguments: $1 instant since which a call counts.
-- Result: one row: hosts, newest_host_id, medians of ncpus, ram_bytes, disk_free_bytes and flop_per_s, the most of ncpus, ram_bytes and
--   disk_free_bytes, and the speed of all together, availability included; nulls without hosts.
SELECT
    count(*) AS hosts,
    (SELECT coalesce(max(host_id), 0) FROM host) AS newest_host_id,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY ncpus) AS cores,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY ram_bytes) AS memory_bytes,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY disk_free_bytes) AS disk_bytes,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY flop_per_s) AS flop_per_s,
    max(ncpus)::double precision AS most_cores,
    max(ram_bytes) AS most_memory_bytes,
    max(disk_free_bytes) AS most_disk_bytes,
    coalesce(sum(ncpus * flop_per_s * on_fraction * active_fraction), 0) AS pool_flop_per_s
FROM host
WHERE last_rpc_at >= $1;


-- name: thin_usage_days
-- Purpose: add up old days of the history of usage by the month.
-- Arguments: $1 start of the first month of which days are kept.
-- Result: none.
WITH gone AS (
    DELETE FROM usage_history WHERE unit = 'day' AND starts_at < $1::double precision RETURNING *
)
INSERT INTO usage_history AS old (
    unit, starts_at, submitter_id, account_id, instances, flop, cpu_s, memory_byte_s, gpu_s, used_su
)
SELECT
    'month', extract(epoch FROM date_trunc('month', to_timestamp(starts_at) AT TIME ZONE 'UTC')) AS month_at,
    submitter_id, account_id, sum(instances), sum(flop), sum(cpu_s), sum(memory_byte_s), sum(gpu_s), sum(used_su)
FROM gone
GROUP BY month_at, submitter_id, account_id
ON CONFLICT (unit, starts_at, submitter_id, account_id) DO UPDATE SET
    instances = old.instances + excluded.instances, flop = old.flop + excluded.flop, cpu_s = old.cpu_s + excluded.cpu_s,
    memory_byte_s = old.memory_byte_s + excluded.memory_byte_s, gpu_s = old.gpu_s + excluded.gpu_s,
    used_su = old.used_su + excluded.used_su;


-- name: used_of_estimates
-- Purpose: return used / estimated runtime of jobs, from the first 100 jobs of each batch: elapsed time * cores *
--   speed of the host / estimate. Results of GPU versions are left out: a host's speed is that of its CPUs.
-- Arguments: $1 batch_ids.
-- Result: batch_id, used_fraction, by batch and the instance that came back last first.
SELECT wanted.batch_id, instance.elapsed_s * class.ncpus * host.flop_per_s / class.fpops_est_flop AS used_fraction
FROM unnest($1::bigint[]) AS wanted (batch_id)
CROSS JOIN LATERAL (
    SELECT job.job_id, job.job_class_id
    FROM job
    WHERE job.batch_id = wanted.batch_id
    ORDER BY job.job_id
    LIMIT 100
) AS first
JOIN job_class AS class ON class.job_class_id = first.job_class_id
JOIN instance ON instance.job_id = first.job_id AND instance.state = 'valid' AND instance.elapsed_s > 0
JOIN host ON host.host_id = instance.host_id
JOIN app_version USING (app_version_id)
JOIN plan_class ON plan_class.name = app_version.plan_class AND plan_class.gpu_type IS NULL
ORDER BY wanted.batch_id, instance.reported_at DESC, instance.instance_id;


-- name: write_batch_orders
-- Purpose: store the ordering pass's notes on batches.
-- Arguments: $1 batch_ids (ascending), $2 waited_s, $3 waiting_since or nulls, $4 bypassed, $5 sent, $6 charged, $7 used,
--   $8 charged_at, $9 used_fraction, $10 sampled, $11 rate (arrays).
-- Result: none.
INSERT INTO batch_order (
    batch_id, waited_s, waiting_since, bypassed, sent, charged, used, charged_at, used_fraction, sampled, rate
)
SELECT *
FROM unnest(
    $1::bigint[], $2::double precision[], $3::double precision[], $4::int[], $5::bigint[], $6::bigint[], $7::bigint[],
    $8::double precision[], $9::double precision[], $10::bigint[], $11::double precision[]
) AS noted (batch_id, waited_s, waiting_since, bypassed, sent, charged, used, charged_at, used_fraction, sampled, rate)
ORDER BY batch_id
ON CONFLICT (batch_id) DO UPDATE SET
    waited_s = excluded.waited_s, waiting_since = excluded.waiting_since, bypassed = excluded.bypassed,
    sent = excluded.sent, charged = excluded.charged, used = excluded.used, charged_at = excluded.charged_at,
    used_fraction = excluded.used_fraction, sampled = excluded.sampled, rate = excluded.rate;


-- name: write_breakdowns
-- Purpose: store the breakdowns of batches' places.
-- Arguments: $1 batch_ids, $2 computed_at, $3 records as JSON (arrays).
-- Result: none.
INSERT INTO batch_breakdown (batch_id, computed_at, record)
SELECT *
FROM unnest($1::bigint[], $2::double precision[], $3::jsonb[]) AS made (batch_id, computed_at, record)
ORDER BY batch_id
ON CONFLICT (batch_id) DO UPDATE SET computed_at = excluded.computed_at, record = excluded.record;


-- name: write_grants
-- Purpose: store the used and reserved amounts of grants in their current periods.
-- Arguments: $1 account_ids, $2 period_start_at, $3 used_su, $4 reserved_su (arrays).
-- Result: none.
UPDATE account_grant SET
    period_start_at = charged.period_start_at, used_su = charged.used_su, reserved_su = charged.reserved_su
FROM unnest($1::int[], $2::double precision[], $3::double precision[], $4::double precision[]) AS charged (
    account_id, period_start_at, used_su, reserved_su
)
WHERE account_grant.account_id = charged.account_id;


-- name: write_standings
-- Purpose: store the standings of submitters, for their next submissions.
-- Arguments: $1 submitter_ids, $2 account_ids, $3 now, $4 standings as JSON (arrays but for now).
-- Result: none.
INSERT INTO usage (submitter_id, account_id, flop, cpu_s, memory_byte_s, gpu_s, at, standing)
SELECT submitter_id, account_id, 0, 0, 0, 0, $3::double precision, standing
FROM unnest($1::int[], $2::int[], $4::jsonb[]) AS stands (submitter_id, account_id, standing)
ORDER BY submitter_id, account_id
ON CONFLICT (submitter_id, account_id) DO UPDATE SET standing = excluded.standing
WHERE usage.standing IS DISTINCT FROM excluded.standing;


-- name: write_usage
-- Purpose: store submitters' usage.
-- Arguments: $1 submitter_ids, $2 account_ids, $3 flop, $4 cpu_s, $5 memory_byte_s, $6 gpu_s, $7 at (arrays),
--   $8 accuracies as JSON arrays.
-- Result: none.
INSERT INTO usage (submitter_id, account_id, flop, cpu_s, memory_byte_s, gpu_s, at, accuracies)
SELECT
    submitter_id, account_id, flop, cpu_s, memory_byte_s, gpu_s, at,
    ARRAY(SELECT value::double precision FROM jsonb_array_elements_text(used.accuracies) WITH ORDINALITY ORDER BY ordinality)
FROM unnest(
    $1::int[], $2::int[], $3::double precision[], $4::double precision[], $5::double precision[],
    $6::double precision[], $7::double precision[], $8::jsonb[]
) AS used (submitter_id, account_id, flop, cpu_s, memory_byte_s, gpu_s, at, accuracies)
ORDER BY submitter_id, account_id
ON CONFLICT (submitter_id, account_id) DO UPDATE SET
    flop = excluded.flop, cpu_s = excluded.cpu_s, memory_byte_s = excluded.memory_byte_s, gpu_s = excluded.gpu_s,
    at = excluded.at, accuracies = excluded.accuracies;

-- name: batches_around
-- Purpose: return the active batches with fresh unsent instances around a place in the order.
-- Arguments: $1 order_tier, $2 order_key and $3 batch_id of the place, $4 limit on each side, $5 batch_ids to leave out.
-- Result: batch_id and is_before: first the batches before the place, the nearest first, then those after it.
(
    SELECT batch_id, true AS is_before
    FROM batch
    WHERE state = 'active' AND waiting
        AND EXISTS (
            SELECT FROM instance
            WHERE instance.batch_id = batch.batch_id AND instance.state = 'unsent' AND NOT instance.urgent
        )
        AND (order_tier, order_key, batch_id) < ($1::int, $2::double precision, $3::bigint)
        AND batch_id NOT IN (SELECT unnest($5::bigint[]))
    ORDER BY order_tier DESC, order_key DESC, batch_id DESC
    LIMIT $4
)
UNION ALL
(
    SELECT batch_id, false AS is_before
    FROM batch
    WHERE state = 'active' AND waiting
        AND EXISTS (
            SELECT FROM instance
            WHERE instance.batch_id = batch.batch_id AND instance.state = 'unsent' AND NOT instance.urgent
        )
        AND (order_tier, order_key, batch_id) > ($1::int, $2::double precision, $3::bigint)
        AND batch_id NOT IN (SELECT unnest($5::bigint[]))
    ORDER BY order_tier, order_key, batch_id
    LIMIT $4
);


-- name: batches_in_order
-- Purpose: return the first active batches with fresh unsent instances in order.
-- Arguments: $1 limit.
-- Result: batch_id, in order.
SELECT batch_id FROM batch
WHERE state = 'active' AND waiting
    AND EXISTS (
        SELECT FROM instance
        WHERE instance.batch_id = batch.batch_id AND instance.state = 'unsent' AND NOT instance.urgent
    )
ORDER BY order_tier, order_key, batch_id
LIMIT $1;


-- name: batches_with_fresh
-- Purpose: return those of some batches that have fresh unsent instances.
-- Arguments: $1 batch_ids.
-- Result: batch_id.
SELECT batch_id FROM batch
WHERE batch_id = ANY($1::bigint[])
    AND EXISTS (
        SELECT FROM instance
        WHERE instance.batch_id = batch.batch_id AND instance.state = 'unsent' AND NOT instance.urgent
    );


-- name: drop_grant
-- Purpose: delete an account's grant: its work is no longer charged to it.
-- Arguments: $1 account_id.
-- Result: none.
DELETE FROM account_grant WHERE account_id = $1;


-- name: drop_limit
-- Purpose: delete a limit.
-- Arguments: $1 scope, $2 quantity, $3 name, empty for all.
-- Result: its scope; no row when there was none.
DELETE FROM work_limit WHERE scope = $1 AND quantity = $2 AND name = $3
RETURNING scope;


-- name: last_usage_month
-- Purpose: return the last month of which the history of usage has no days.
-- Arguments: none.
-- Result: one row: starts_at, null when it has all days.
SELECT max(starts_at) AS starts_at FROM usage_history WHERE unit = 'month';


-- name: list_breakdowns
-- Purpose: return the breakdowns of batches' places.
-- Arguments: $1 batch_ids.
-- Result: batch_id, record, by batch_id.
SELECT batch_id, record FROM batch_breakdown WHERE batch_id = ANY($1::bigint[]) ORDER BY batch_id;


-- name: list_grants
-- Purpose: return the grants of accounts.
-- Arguments: none.
-- Result: rows of account_grant by account_id.
SELECT account_id, granted_su, period_start_at, period_s, used_su, reserved_su FROM account_grant ORDER BY account_id;


-- name: list_limits
-- Purpose: return every limit.
-- Arguments: none.
-- Result: rows of work_limit by key.
SELECT scope, quantity, name, soft, hard FROM work_limit ORDER BY scope, quantity, name;


-- name: list_usage
-- Purpose: return all submitters' decayed usage.
-- Arguments: none.
-- Result: rows of usage by key.
SELECT submitter_id, account_id, flop, cpu_s, memory_byte_s, gpu_s, at, accuracies
FROM usage
ORDER BY submitter_id, account_id;


-- name: list_usage_windows
-- Purpose: return all submitters' usage by time window.
-- Arguments: none.
-- Result: rows of usage_window by key.
SELECT submitter_id, account_id, level, starts_at, length_s, flop
FROM usage_window
ORDER BY submitter_id, account_id, level, starts_at, length_s;


-- name: places_of_batches
-- Purpose: return batches' places in the order of the ready ones (`ready_batches`) with fresh unsent instances.
-- Arguments: $1 batch_ids, $2 app_ids, $3 batch_ids to leave out.
-- Result: batch_id, place (1 = first), active (how many are ordered), by batch_id; no row for another batch.
SELECT ordered.batch_id, ordered.place, ordered.active
FROM (
    SELECT
        batch_id,
        row_number() OVER (ORDER BY order_tier, order_key, batch_id) AS place,
        count(*) OVER () AS active
    FROM batch
    WHERE state = 'active' AND waiting AND hold IS NULL
        AND batch_id NOT IN (SELECT name::bigint FROM restriction WHERE kind = 'batch')
        AND app_id NOT IN (SELECT name::int FROM restriction WHERE kind = 'app')
        AND queue NOT IN (SELECT name FROM restriction WHERE kind = 'queue')
        AND app_id = ANY($2::int[])
        AND batch_id NOT IN (SELECT unnest($3::bigint[]))
        AND EXISTS (
            SELECT FROM instance
            WHERE instance.batch_id = batch.batch_id AND instance.state = 'unsent' AND NOT instance.urgent
        )
) AS ordered
WHERE ordered.batch_id = ANY($1::bigint[])
ORDER BY ordered.batch_id;


-- name: put_grant
-- Purpose: insert or replace an account's service units per period; the used amount stays.
-- Arguments: $1 account_id, $2 granted_su, $3 period_start_at, $4 period_s.
-- Result: none.
INSERT INTO account_grant (account_id, granted_su, period_start_at, period_s) VALUES ($1, $2, $3, $4)
ON CONFLICT (account_id) DO UPDATE SET
    granted_su = excluded.granted_su, period_start_at = excluded.period_start_at, period_s = excluded.period_s;


-- name: put_limit
-- Purpose: insert or replace the limit of a scope, quantity and name.
-- Arguments: $1 scope, $2 quantity, $3 name, empty for all, $4 soft or null, $5 hard or null.
-- Result: none.
INSERT INTO work_limit (scope, quantity, name, soft, hard) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (scope, quantity, name) DO UPDATE SET soft = excluded.soft, hard = excluded.hard;


-- name: release_batch
-- Purpose: let an active batch wait for no other batch any more.
-- Arguments: $1 batch_id.
-- Result: batch_id; no row when there is no such active batch.
UPDATE batch SET after_ok = '{}', after_any = '{}' WHERE batch_id = $1 AND ended_at IS NULL
RETURNING batch_id;


-- name: reset_usage
-- Purpose: forget the usage of submitters so far; an ordering pass that has read it is too late.
-- Arguments: $1 submitter's name or null, $2 account's name or null.
-- Result: submitter_id, account_id of each that had a record, by key.
WITH chosen AS (
    SELECT usage.submitter_id, usage.account_id
    FROM usage
    JOIN submitter ON submitter.submitter_id = usage.submitter_id
    JOIN account ON account.account_id = usage.account_id
    WHERE ($1::text IS NULL OR submitter.name = $1) AND ($2::text IS NULL OR account.name = $2)
),
late AS (UPDATE ordering SET serial = serial + 1),
windows AS (
    DELETE FROM usage_window USING chosen
    WHERE usage_window.submitter_id = chosen.submitter_id AND usage_window.account_id = chosen.account_id
),
reset AS (
    UPDATE usage SET flop = 0, cpu_s = 0, memory_byte_s = 0, gpu_s = 0
    FROM chosen
    WHERE usage.submitter_id = chosen.submitter_id AND usage.account_id = chosen.account_id
    RETURNING usage.submitter_id, usage.account_id
)
SELECT submitter_id, account_id FROM reset ORDER BY submitter_id, account_id;


-- name: set_account
-- Purpose: charge an active batch to another account; sent work stays charged to the previous one.
-- Arguments: $1 batch_id, $2 account_id.
-- Result: batch_id; no row when there is no such batch, or something of it was sent.
UPDATE batch SET account_id = $2
WHERE batch_id = $1 AND ended_at IS NULL
    AND NOT EXISTS (SELECT FROM batch_count WHERE batch_count.batch_id = $1 AND sent <> 0)
RETURNING batch_id;


-- name: set_deadline
-- Purpose: change the deadline of an active batch that has one.
-- Arguments: $1 batch_id, $2 deadline_at.
-- Result: batch_id; no row when there is no such batch.
UPDATE batch SET deadline_at = $2
WHERE batch_id = $1 AND ended_at IS NULL AND deadline_at IS NOT NULL
RETURNING batch_id;


-- name: set_moved
-- Purpose: record when an active batch gets a new position, and the foremost tier that it leaves.
-- Arguments: $1 batch_id, $2 moved_at.
-- Result: batch_id; no row when there is no such active batch.
UPDATE batch SET moved_at = $2, foremost_tier = least(foremost_tier, order_tier)
WHERE batch_id = $1 AND ended_at IS NULL
RETURNING batch_id;


-- name: set_service
-- Purpose: change the service level and the queue of an active batch; null leaves one unchanged. If levels are tiers, the
--   level acts at once.
-- Arguments: $1 batch_id, $2 level, $3 queue, $4 tier of each level (null: the level acts at the next ordering).
-- Result: batch_id; no row when there is no such active batch.
WITH wanted AS (
    SELECT
        batch_id, coalesce($2, level) AS level, coalesce($3, queue) AS queue,
        coalesce(($4::jsonb ->> coalesce($2, level))::int - ($4::jsonb ->> level)::int, 0) AS by_tiers
    FROM batch
    WHERE batch_id = $1 AND ended_at IS NULL
    FOR NO KEY UPDATE
),
changed AS (
    UPDATE batch SET level = wanted.level, queue = wanted.queue, order_tier = order_tier + by_tiers
    FROM wanted
    WHERE batch.batch_id = wanted.batch_id
    RETURNING batch.batch_id
),
explained AS (
    UPDATE batch_breakdown SET
        record = record || jsonb_build_object('level', wanted.level, 'tier', (record ->> 'tier')::int + by_tiers)
    FROM wanted
    WHERE batch_breakdown.batch_id = wanted.batch_id AND $4 IS NOT NULL
)
SELECT batch_id FROM changed;


-- name: set_user_priority
-- Purpose: change the user priority of an active batch.
-- Arguments: $1 batch_id, $2 user_priority.
-- Result: batch_id; no row when there is no such active batch.
UPDATE batch SET user_priority = $2
WHERE batch_id = $1 AND ended_at IS NULL
RETURNING batch_id;


-- name: set_host_labels
-- Purpose: replace the labels that operators gave to a host.
-- Arguments: $1 host_id, $2 labels (array).
-- Result: host_id; no row when there is no such host.
UPDATE host SET labels = $2::text[] WHERE host_id = $1 RETURNING host_id;


-- name: usage_report
-- Purpose: add up the history of usage.
-- Arguments: $1 start, $2 end of the range, $3 day, week or month, null: not by time, $4 by account, $5 by submitter,
--   $6 account_ids or null for all, $7 submitter_id or null for all, $8 limit.
-- Result: starts_at, account and submitter or nulls, the sums, in this order.
SELECT
    CASE
        WHEN $3::text IS NOT NULL
        THEN extract(epoch FROM date_trunc($3::text, to_timestamp(history.starts_at) AT TIME ZONE 'UTC'))::double precision
    END AS starts_at,
    CASE
        WHEN $4::boolean THEN coalesce(account.name, 'deleted account ' || history.account_id)
    END AS account,
    CASE
        WHEN $5::boolean THEN coalesce(submitter.name, 'deleted submitter ' || history.submitter_id)
    END AS submitter,
    sum(history.instances)::bigint AS instances, sum(history.flop) AS flop, sum(history.cpu_s) AS cpu_s,
    sum(history.memory_byte_s) AS memory_byte_s, sum(history.gpu_s) AS gpu_s, sum(history.used_su) AS used_su
FROM usage_history AS history
LEFT JOIN account ON account.account_id = history.account_id
LEFT JOIN submitter ON submitter.submitter_id = history.submitter_id
WHERE history.unit IN ('day', 'month') AND history.starts_at >= $1::double precision
    AND history.starts_at < $2::double precision
    AND ($6::int[] IS NULL OR history.account_id = ANY($6::int[]))
    AND ($7::int IS NULL OR history.submitter_id = $7::int)
GROUP BY 1, 2, 3
ORDER BY 1, 2, 3
LIMIT $8;
