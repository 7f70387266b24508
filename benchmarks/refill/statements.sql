-- name: drain_batches
-- Purpose: cancel what waits of the first active batches.
-- Arguments: $1 how many batches.
-- Result: none.
WITH first AS (
    SELECT batch_id
    FROM batch
    WHERE state = 'active'
        AND (SELECT sum(batch_count.unsent) FROM batch_count WHERE batch_count.batch_id = batch.batch_id) > 0
    ORDER BY order_tier, order_key, batch_id
    LIMIT $1
),
cancelled AS (
    UPDATE instance SET state = 'cancelled'
    FROM first
    WHERE instance.batch_id = first.batch_id AND instance.state = 'unsent'
    RETURNING instance.batch_id
)
UPDATE batch_count SET unsent = batch_count.unsent - 1
FROM cancelled
WHERE batch_count.batch_id = cancelled.batch_id AND batch_count.stripe = 3;


-- name: many_batches
-- Purpose: active batches of one job each, which waits; in order, and counted in as many rows as there are stripes.
-- Arguments: $1 app_id, $2 how many, $3 created_at.
-- Result: none.
WITH batch_made AS (
    INSERT INTO batch (
        submitter_id, account_id, app_id, qos, state, jobs_total, created_at, order_tier, order_key, logical_start_at,
        logical_end_at, batch_flop
    )
    SELECT submitter_id, account_id, $1::int, 'throughput', 'active', 1, $3::double precision, 0, number, 0, number, 3.6e12
    FROM submitter CROSS JOIN generate_series(1, $2::int) AS number
    ORDER BY number
    RETURNING batch_id
),
class_made AS (
    INSERT INTO job_class (
        batch_id, fpops_est_flop, fpops_bound_flop, memory_bytes, disk_bytes, delay_bound_s, ncpus, quorum, max_errors,
        max_instances, validator
    )
    SELECT batch_id, 3.6e12, 3.6e14, 1e8, 1e8, 604800, 1, 1, 3, 6, 'accept' FROM batch_made ORDER BY batch_id
    RETURNING batch_id, job_class_id
),
job_made AS (
    INSERT INTO job (batch_id, job_class_id)
    SELECT batch_id, job_class_id FROM class_made ORDER BY batch_id
    RETURNING job_id, batch_id, job_class_id
),
instance_made AS (
    INSERT INTO instance (job_id, batch_id, job_class_id, shard, created_at)
    SELECT job_id, batch_id, job_class_id, job_id % 64, $3::double precision FROM job_made ORDER BY job_id
    RETURNING batch_id
)
INSERT INTO batch_count (batch_id, stripe, unsent, sent)
SELECT batch_id, stripe, CASE stripe WHEN 0 THEN 16 ELSE -1 END, CASE stripe WHEN 0 THEN 0 ELSE 1 END
FROM instance_made CROSS JOIN generate_series(0, 15) AS stripe;


-- name: reorder_batches
-- Purpose: give every active batch another place in the order.
-- Arguments: none.
-- Result: none.
UPDATE batch SET order_key = (batch_id * 7919) % 10007 WHERE state = 'active';
