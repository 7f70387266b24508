-- name: send
-- Purpose: send an instance of every n-th active batch that has one, as its counters say.
-- Arguments: $1 n.
-- Result: none.
UPDATE batch_count SET unsent = unsent - 1, in_progress = in_progress + 1, sent = sent + 1
WHERE stripe = 0 AND unsent > 0 AND batch_id % $1 = 0;


-- name: submitters
-- Purpose: submitters with shares of 1 to 9, in the accounts one after the other.
-- Arguments: $1 how many, $2 account_ids, $3 now.
-- Result: none.
INSERT INTO submitter (name, account_id, shares, created_at)
SELECT 's' || number, ($2::int[])[1 + number % cardinality($2::int[])], 1 + number * 7 % 9, $3::double precision
FROM generate_series(1, $1::int) AS number;


-- name: waiting
-- Purpose: active batches of ten jobs each, of which nothing was sent yet, of all submitters in turn and up to 30 days old,
--   with what a submission writes that the ordering reads.
-- Arguments: $1 app_id, $2 how many, $3 now.
-- Result: none.
WITH person AS (
    SELECT submitter_id, account_id, row_number() OVER (ORDER BY submitter_id) - 1 AS place, count(*) OVER () AS persons FROM submitter
),
batch_made AS (
    INSERT INTO batch (
        submitter_id, account_id, app_id, qos, state, jobs_total, created_at, order_tier, order_key, logical_start_at,
        logical_end_at, batch_flop, charged_s, user_priority, queue, level
    )
    SELECT
        submitter_id, account_id, $1::int, 'throughput', 'active', 10, $3::double precision - number * 7919 % 2592000, 0, number, 0,
        number, 3.6e13, 36, -(number % 100), (ARRAY['express', 'normal', 'bonus'])[1 + number % 3],
        (ARRAY['expedite', 'normal', 'standby'])[1 + number % 7 % 3]
    FROM generate_series(1, $2::int) AS number
    JOIN person ON person.place = number % person.persons
    ORDER BY number
    RETURNING batch_id, created_at
),
class_made AS (
    INSERT INTO job_class (
        batch_id, fpops_est_flop, fpops_bound_flop, memory_bytes, disk_bytes, delay_bound_s, ncpus, quorum, max_errors,
        max_instances, validator
    )
    SELECT batch_id, 3.6e12, 3.6e14, 1e8, 1e8, 604800, 1 + batch_id % 8, 1, 3, 6, 'accept' FROM batch_made ORDER BY batch_id
),
noted AS (
    INSERT INTO batch_order (batch_id, waiting_since) SELECT batch_id, created_at FROM batch_made ORDER BY batch_id
)
INSERT INTO batch_count (batch_id, stripe, unsent)
SELECT batch_id, stripe, CASE stripe WHEN 0 THEN 10 ELSE 0 END
FROM batch_made CROSS JOIN generate_series(0, 15) AS stripe;
