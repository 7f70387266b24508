-- name: add_counts
-- Purpose: add to the counters of batches, in rows that no other transaction is adding to, in key order.
-- Arguments: $1 batch_ids, $2 jobs_validated, $3 jobs_failed, $4 unsent, $5 in_progress, $6 retries, $7 sent, $8 reported,
--   $9 deadlines_missed (arrays, the batch_ids distinct).
-- Result: none.
WITH mine AS MATERIALIZED (
    -- The first free stripe, locked until this transaction ends; the subquery tries them in turn. When
    -- all 16 are taken, two transactions share one: the later waits for the earlier, in the order of batches.
    SELECT coalesce(
        (SELECT stripe FROM generate_series(0, 15) AS stripe WHERE pg_try_advisory_xact_lock(1297437782, stripe) LIMIT 1),
        pg_backend_pid() % 16
    )::smallint AS stripe
)
INSERT INTO batch_count AS old (
    batch_id, stripe, jobs_validated, jobs_failed, unsent, in_progress, retries, sent, reported, deadlines_missed
)
SELECT
    change.batch_id, mine.stripe, jobs_validated, jobs_failed, unsent, in_progress, retries, sent, reported,
    deadlines_missed
FROM mine
CROSS JOIN unnest(
    $1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
    $9::bigint[]
) AS change (
    batch_id, jobs_validated, jobs_failed, unsent, in_progress, retries, sent, reported, deadlines_missed
)
ORDER BY change.batch_id
ON CONFLICT (batch_id, stripe) DO UPDATE SET
    jobs_validated = old.jobs_validated + excluded.jobs_validated,
    jobs_failed = old.jobs_failed + excluded.jobs_failed,
    unsent = old.unsent + excluded.unsent,
    in_progress = old.in_progress + excluded.in_progress,
    retries = old.retries + excluded.retries,
    sent = old.sent + excluded.sent,
    reported = old.reported + excluded.reported,
    deadlines_missed = old.deadlines_missed + excluded.deadlines_missed;


-- name: begin_comparisons
-- Purpose: count an attempt to compare jobs' outputs before it starts. During the attempt no other process takes the
--   jobs; if the process dies, they are retried a minute later, then after 4, 16, ... minutes, at most a day. Jobs that
--   another process has just taken or is settling are left out, without waiting for it.
-- Arguments: $1 job_ids, $2 now.
-- Result: job_id, attempts with this one.
UPDATE job_todo SET
    attempts = attempts + 1,
    not_before = $2 + least(86400, 60 * power(4::double precision, least(attempts, 10)))
FROM (
    SELECT job_id
    FROM job_todo
    WHERE job_id = ANY($1::bigint[]) AND not_before <= $2
    ORDER BY job_id
    FOR UPDATE SKIP LOCKED
) AS free
WHERE job_todo.job_id = free.job_id
RETURNING job_todo.job_id, attempts;


-- name: complete_batches
-- Purpose: end those of some locked batches whose jobs are all valid or failed.
-- Arguments: $1 batch_ids, $2 ended_at (arrays).
-- Result: batch_id of those that ended.
UPDATE batch SET state = 'complete', ended_at = settled.ended_at
FROM unnest($1::bigint[], $2::double precision[]) AS settled (batch_id, ended_at)
WHERE batch.batch_id = settled.batch_id
    AND batch.state = 'active'
    AND batch.jobs_total = (
        SELECT sum(jobs_validated + jobs_failed) FROM batch_count WHERE batch_count.batch_id = settled.batch_id
    )
RETURNING batch.batch_id;


-- name: hasten_instances
-- Purpose: make the unsent instances of jobs urgent, because another instance has returned.
-- Arguments: $1 job_ids.
-- Result: none.
UPDATE instance SET urgent = true
WHERE job_id = ANY($1::bigint[]) AND state = 'unsent' AND urgent IS NOT TRUE;  -- not "NOT urgent": by job, not by way of instance_fresh


-- name: keep_copies
-- Purpose: make the unsent copies of jobs retries, because the instances that they were to help have ended.
-- Arguments: $1 job_ids.
-- Result: none.
UPDATE instance SET copied_because = NULL
WHERE job_id = ANY($1::bigint[]) AND state = 'unsent' AND copied_because IS NOT NULL;


-- name: insert_instances
-- Purpose: insert unsent instances of jobs; urgent for a retry, or if another instance has returned.
-- Arguments: $1 job_ids, $2 batch_ids, $3 job_class_ids, $4 shards, $5 how many, $6 retries, $7 created_at (arrays, one entry per
--   job).
-- Result: none.
INSERT INTO instance (job_id, batch_id, job_class_id, shard, retries, urgent, created_at)
SELECT
    new.job_id, new.batch_id, new.job_class_id, new.shard, least(new.retries, 32767),
    new.retries > 0 OR (
        SELECT count(*)  -- not EXISTS, which may be planned as a hash of all instances
        FROM instance AS sibling
        WHERE sibling.job_id = new.job_id AND sibling.state IN ('reported', 'inconclusive')
    ) > 0,
    new.created_at
FROM unnest(
    $1::bigint[], $2::bigint[], $3::bigint[], $4::smallint[], $5::int[], $6::int[], $7::double precision[]
) WITH ORDINALITY AS new (job_id, batch_id, job_class_id, shard, count, retries, created_at, position)
CROSS JOIN LATERAL generate_series(1, new.count)
ORDER BY new.position;


-- name: instances_of_jobs
-- Purpose: return the instances of jobs for the validator, with their uploads (JSON).
-- Arguments: $1 job_ids.
-- Result: instances by job and id.
SELECT
    instance.instance_id, instance.job_id, instance.batch_id, instance.state, instance.host_id, instance.app_version_id,
    instance.sent_at, instance.due_at, instance.reported_at, instance.est_runtime_s, instance.elapsed_s, instance.tight,
    instance.turnaround_sample, instance.timeout_at, app.name AS app_name,
    coalesce(batch.median_turnaround_s, app.turnaround_s_per_flop * job_class.fpops_est_flop) AS median_turnaround_s,
    (
        SELECT jsonb_agg(jsonb_build_object('name', name, 'nbytes', nbytes, 'md5', md5) ORDER BY name)
        FROM upload
        WHERE upload.instance_id = instance.instance_id
    ) AS uploads
FROM instance
JOIN job_class ON job_class.job_class_id = instance.job_class_id
JOIN batch ON batch.batch_id = instance.batch_id
JOIN app ON app.app_id = batch.app_id
WHERE instance.job_id = ANY($1::bigint[])
ORDER BY instance.job_id, instance.instance_id;


-- name: job_classes
-- Purpose: return job classes by id.
-- Arguments: $1 job_class_ids.
-- Result: job classes by id.
SELECT job_class_id, batch_id, fpops_est_flop, fpops_bound_flop, memory_bytes, disk_bytes, delay_bound_s, ncpus, quorum,
       max_errors, max_instances, hr_type, validator, tolerance, inputs, outputs
FROM job_class
WHERE job_class_id = ANY($1::bigint[])
ORDER BY job_class_id;


-- name: lock_batches
-- Purpose: lock batches until the transaction ends.
-- Arguments: $1 batch_ids.
-- Result: batch_id, ascending.
SELECT batch_id FROM batch WHERE batch_id = ANY($1::bigint[]) ORDER BY batch_id FOR NO KEY UPDATE;


-- name: lock_instances_of_jobs
-- Purpose: lock every instance of jobs until the transaction ends.
-- Arguments: $1 job_ids.
-- Result: instance_id, ascending.
SELECT instance_id FROM instance WHERE job_id = ANY($1::bigint[]) ORDER BY instance_id FOR UPDATE;


-- name: lock_jobs
-- Purpose: lock jobs until the transaction ends.
-- Arguments: $1 job_ids.
-- Result: job_id, batch_id, job_class_id and state, by id.
SELECT job_id, batch_id, job_class_id, state
FROM job
WHERE job_id = ANY($1::bigint[])
ORDER BY job_id
FOR NO KEY UPDATE;


-- name: lock_marks
-- Purpose: lock the marks of jobs until the transaction ends.
-- Arguments: $1 job_ids.
-- Result: job_id and serial, by id.
SELECT job_id, serial FROM job_todo WHERE job_id = ANY($1::bigint[]) ORDER BY job_id FOR UPDATE;


-- name: renew_marks
-- Purpose: give the marks of jobs new serials, because their instances have changed: what was decided from an earlier read
--   is not written. The marks are locked.
-- Arguments: $1 job_ids.
-- Result: none.
UPDATE job_todo SET serial = nextval('job_todo_serial'), not_before = 0 WHERE job_id = ANY($1::bigint[]);


-- name: settle_jobs
-- Purpose: write the outcome of locked jobs. An ended job keeps its end.
-- Arguments: $1 job_ids, $2 states, $3 settled_at, $4 canonical_instance_ids or nulls, $5 failures or nulls (arrays, the job_ids
--   distinct).
-- Result: none.
UPDATE job SET
    state = settled.state,
    canonical_instance_id = coalesce(job.canonical_instance_id, settled.canonical_instance_id),
    failure = coalesce(job.failure, settled.failure),
    ended_at = CASE WHEN settled.state = 'open' THEN NULL ELSE coalesce(job.ended_at, settled.settled_at) END
FROM unnest($1::bigint[], $2::text[], $3::double precision[], $4::bigint[], $5::text[])
    AS settled (job_id, state, settled_at, canonical_instance_id, failure)
WHERE job.job_id = settled.job_id;


-- name: step_instances
-- Purpose: change the state of locked instances, each only from the expected state.
-- Arguments: $1 instance_ids, $2 from_states, $3 to_states, $4 turnaround_samples or nulls, $5 reasons or nulls,
--   $6 granted credit or nulls (arrays, the instance_ids distinct).
-- Result: one row per step made: instance_id, job_id, batch_id, shard, sent_at, due_at, reported_at, host_id,
--   volunteer_id and, if this step granted it, credit.
UPDATE instance SET
    state = step.to_state,
    turnaround_sample = coalesce(step.turnaround_sample, instance.turnaround_sample),
    reason = coalesce(step.reason, instance.reason),
    credit = coalesce(step.credit, instance.credit)
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::double precision[], $5::text[], $6::double precision[])
    AS step (instance_id, from_state, to_state, turnaround_sample, reason, credit)
WHERE instance.instance_id = step.instance_id AND instance.state = step.from_state
RETURNING
    instance.instance_id, instance.job_id, instance.batch_id, instance.shard, instance.sent_at, instance.due_at,
    instance.reported_at, instance.host_id, instance.volunteer_id, step.credit;


-- name: unmark_jobs
-- Purpose: remove the marks of settled jobs; they are locked.
-- Arguments: $1 job_ids.
-- Result: none.
DELETE FROM job_todo WHERE job_id = ANY($1::bigint[]);


-- name: unsettled_jobs
-- Purpose: return the jobs of a share to settle, oldest change first, except those whose outputs are being compared.
-- Arguments: $1 limit, $2 now, $3 how many shares there are, $4 this share, counted from 0, $5 whether to return jobs
--   whose validator reads outputs.
-- Result: the job's serial, state, class, copies and canonical instance, whether its batch was aborted, and its app's name; by
--   serial.
SELECT
    todo.serial, job.job_id, job.batch_id, job.job_class_id, job.state, job.copies, job.tail_copies,
    job.more_instances, job.canonical_instance_id, coalesce(job.retried_after, 0) AS retried_after,
    batch.state = 'aborted' AS batch_aborted, app.name AS app_name
FROM (
    SELECT job_id, serial
    FROM job_todo
    WHERE not_before <= $2
        AND job_id % $3::int = $4::int
        AND (
            $5::boolean
            OR (
                SELECT job_class.validator
                FROM job
                JOIN job_class ON job_class.job_class_id = job.job_class_id
                WHERE job.job_id = job_todo.job_id
            ) <> 'tolerance'
        )
    ORDER BY serial
    LIMIT $1
) AS todo
JOIN job ON job.job_id = todo.job_id
JOIN batch ON batch.batch_id = job.batch_id
JOIN app ON app.app_id = batch.app_id
ORDER BY todo.serial;

-- name: batch_tails
-- Purpose: return the active batches with few open jobs or few unsent instances.
-- Arguments: $1 share of a batch's jobs, $2 jobs (the larger of both counts), $3 limit, $4 unsent instances per job.
-- Result: rows of batch_with_counts by (order_tier, order_key, batch_id).
SELECT *
FROM batch_with_counts
WHERE state = 'active'
    AND jobs_total - jobs_validated - jobs_failed >= 1
    AND (
        jobs_total - jobs_validated - jobs_failed <= greatest(ceil($1::double precision * jobs_total), $2::int)
        OR unsent <= $4::double precision * jobs_total
    )
ORDER BY order_tier, order_key, batch_id
LIMIT $3;


-- name: copy_use
-- Purpose: return the number of results a batch needs, and the number of extra copies made.
-- Arguments: $1 batch_id.
-- Result: one row: wanted, the sum over all its jobs of the larger of quorum and copies; copies, that of tail_copies.
SELECT
    coalesce(sum(greatest(job_class.quorum, job.copies)), 0)::bigint AS wanted,
    coalesce(sum(job.tail_copies), 0)::bigint AS copies
FROM job
JOIN job_class USING (job_class_id)
WHERE job.batch_id = $1;


-- name: insert_copies
-- Purpose: insert one more unsent instance of each of some jobs, urgent like the retry it may save, with the reason.
-- Arguments: $1 job_ids, $2 batch_ids, $3 job_class_ids, $4 shards, $5 retries, $6 reasons (arrays, one entry per job),
--   $7 created_at.
-- Result: none. They wait in the order given: instance ids ascend in it.
INSERT INTO instance (job_id, batch_id, job_class_id, shard, retries, urgent, created_at, copied_because)
SELECT new.job_id, new.batch_id, new.job_class_id, new.shard, least(new.retries, 32767), true, $7, new.because
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::smallint[], $5::int[], $6::text[]) WITH ORDINALITY
    AS new (job_id, batch_id, job_class_id, shard, retries, because, place)
ORDER BY new.place;


-- name: low_turnaround
-- Purpose: return the hosts with low turnaround, the accelerable apps, and the median turnaround of batches, as
--   defined for batch acceleration (domain/acceleration.py).
-- Arguments: $1 since when batches count, $2 least results of a batch, $3 what a time-out counts in medians, $4 a host's
--   mean below which it is low, $5 more hosts than this an app must have, $6 more than this share of them low.
-- Result: kind (host, app, batch), id, and the median of a batch.
WITH recent AS (
    SELECT batch_id, app_id FROM batch WHERE created_at >= $1
), ended AS (
    SELECT batch_id, host_id, state, sent_at, reported_at FROM instance
    UNION ALL
    SELECT batch_id, host_id, state, sent_at, reported_at FROM finished_instance WHERE batch_ended_at >= $1
), returned AS (
    SELECT
        ended.batch_id, recent.app_id, ended.host_id,
        CASE WHEN ended.state = 'timed_out' THEN NULL ELSE ended.reported_at - ended.sent_at END AS turnaround_s
    FROM ended
    JOIN recent USING (batch_id)
    WHERE ended.state IN ('reported', 'inconclusive', 'valid', 'invalid', 'too_late', 'timed_out')
), median AS (
    SELECT batch_id, percentile_cont(0.5) WITHIN GROUP (ORDER BY turnaround_s) AS median_s
    FROM returned
    GROUP BY batch_id
    HAVING count(turnaround_s) >= $2
), low AS (
    SELECT host_id
    FROM returned
    JOIN median USING (batch_id)
    GROUP BY host_id
    HAVING avg(CASE
        WHEN turnaround_s IS NULL THEN $3::double precision
        WHEN median_s > 0 THEN turnaround_s / median_s
        ELSE 1
    END) < $4::double precision
), accelerable AS (
    SELECT app_id
    FROM (
        SELECT DISTINCT app_id, host_id FROM returned JOIN median USING (batch_id) WHERE turnaround_s IS NOT NULL
    ) AS of_app
    LEFT JOIN low ON low.host_id = of_app.host_id
    GROUP BY app_id
    HAVING count(*) > $5::int AND count(low.host_id) > $6::double precision * count(*)
)
SELECT 'host' AS kind, host_id AS id, NULL::double precision AS median_s FROM low
UNION ALL
SELECT 'app', app_id, NULL FROM accelerable
UNION ALL
SELECT 'batch', batch_id, median_s FROM median
ORDER BY kind, id;


-- name: open_jobs_of_batch
-- Purpose: return the open jobs of a batch.
-- Arguments: $1 batch_id, $2 the job_id after which to begin, $3 limit.
-- Result: job_id, job_class_id, copies, tail_copies, and the median turnaround of the batch's results, or of the app's by
--   size, by id.
SELECT
    job.job_id, job.job_class_id, job.copies, job.tail_copies,
    coalesce(batch.median_turnaround_s, app.turnaround_s_per_flop * job_class.fpops_est_flop) AS median_turnaround_s
FROM job
JOIN job_class ON job_class.job_class_id = job.job_class_id
JOIN batch ON batch.batch_id = job.batch_id
JOIN app ON app.app_id = batch.app_id
WHERE job.batch_id = $1 AND job.job_id > $2 AND job.state = 'open'
ORDER BY job.job_id
LIMIT $3;


-- name: tail_instances_of_jobs
-- Purpose: return the instances of jobs that a batch waits for, with their hosts' statistics.
-- Arguments: $1 job_ids, $2 the present instant.
-- Result: instances by job and id; ln_ratio is the mean of the host's turnaround samples of such
--   due dates (tight or not), shrunk by two pseudo-samples of 0.
SELECT
    instance.instance_id, instance.job_id, instance.state, instance.tight, instance.host_id, instance.app_version_id,
    instance.sent_at, instance.est_runtime_s,
    coalesce(
        CASE WHEN instance.tight THEN hav.tight_sum ELSE hav.relaxed_sum END * kept.weight
        / (CASE WHEN instance.tight THEN hav.tight_n ELSE hav.relaxed_n END * kept.weight + 2),
        0
    ) AS ln_ratio
FROM instance
LEFT JOIN host_app_version AS hav ON hav.host_id = instance.host_id AND hav.app_version_id = instance.app_version_id
CROSS JOIN LATERAL (
    SELECT power(2, -least(greatest(0, $2::double precision - hav.stats_at) / 1209600, 1000)) AS weight  -- half-life: 14 days
) AS kept
WHERE instance.job_id = ANY($1::bigint[])
ORDER BY instance.job_id, instance.instance_id;


-- name: take_tail_copies
-- Purpose: count copies of locked jobs that are unchanged since the copies were decided.
-- Arguments: $1 job_ids, $2 how many instances each had, $3 how many copies, $4 what its most instances are raised by
--   (arrays, the job_ids distinct).
-- Result: job_id, batch_id and job_class_id of those that get one.
UPDATE job SET
    tail_copies = job.tail_copies + 1,
    more_instances = job.more_instances + wanted.more_instances
FROM unnest($1::bigint[], $2::int[], $3::int[], $4::int[]) AS wanted (job_id, instances, tail_copies, more_instances)
WHERE job.job_id = wanted.job_id
    AND job.state = 'open'
    AND job.tail_copies = wanted.tail_copies
    AND (SELECT count(*) FROM instance WHERE instance.job_id = wanted.job_id) = wanted.instances
RETURNING job.job_id, job.batch_id, job.job_class_id;
