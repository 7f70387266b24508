-- name: batch_tails
-- Purpose: the active batches of which little is still open, or little is still to be sent.
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
-- Purpose: how many results a batch needs, and how many copies of its jobs were made beyond that.
-- Arguments: $1 batch_id.
-- Result: one row: wanted, the sum over all its jobs of the larger of quorum and copies; copies, that of tail_copies.
SELECT
    coalesce(sum(greatest(job_class.quorum, job.copies)), 0)::bigint AS wanted,
    coalesce(sum(job.tail_copies), 0)::bigint AS copies
FROM job
JOIN job_class USING (job_class_id)
WHERE job.batch_id = $1;


-- name: insert_copies
-- Purpose: one more unsent instance of each of some jobs, urgent like the retry it may save, and why.
-- Arguments: $1 job_ids, $2 batch_ids, $3 job_class_ids, $4 shards, $5 retries, $6 reasons (arrays, one entry per job),
--   $7 created_at.
-- Result: none. They wait in the order given: instance ids ascend in it.
INSERT INTO instance (job_id, batch_id, job_class_id, shard, retries, urgent, created_at, copied_because)
SELECT new.job_id, new.batch_id, new.job_class_id, new.shard, least(new.retries, 32767), true, $7, new.because
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::smallint[], $5::int[], $6::text[]) WITH ORDINALITY
    AS new (job_id, batch_id, job_class_id, shard, retries, because, place)
ORDER BY new.place;


-- name: low_turnaround
-- Purpose: the hosts with low turnaround, the accelerable apps, and the median turnaround of batches, as batch acceleration
--   counts them (domain/acceleration.py, which this keeps to).
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
-- Purpose: the open jobs of a batch.
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
-- Purpose: the instances of jobs that a batch waits for, with what is known of the hosts that have them.
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
-- Purpose: count copies of locked jobs that are as they were when the copies were decided.
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
