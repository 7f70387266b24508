-- Purpose: add to the counters of batches, in rows that no other transaction is adding to, in key order.
-- Arguments: $1 batch_ids, $2 jobs_validated, $3 jobs_failed, $4 unsent, $5 in_progress, $6 retries, $7 sent, $8 reported,
--   $9 deadlines_missed, $10 last_first_dispatch_at or nulls (arrays, the batch_ids distinct).
-- Result: none.
WITH mine AS MATERIALIZED (
    -- The first stripe that nobody has, until this transaction ends; the subquery tries them one after the other. When
    -- all 16 are taken, two share one: the later waits for the earlier, in the order of batches.
    SELECT coalesce(
        (SELECT stripe FROM generate_series(0, 15) AS stripe WHERE pg_try_advisory_xact_lock(1297437782, stripe) LIMIT 1),
        pg_backend_pid() % 16
    )::smallint AS stripe
)
INSERT INTO batch_count AS old (
    batch_id, stripe, jobs_validated, jobs_failed, unsent, in_progress, retries, sent, reported, deadlines_missed,
    last_first_dispatch_at
)
SELECT
    change.batch_id, mine.stripe, jobs_validated, jobs_failed, unsent, in_progress, retries, sent, reported,
    deadlines_missed, last_first_dispatch_at
FROM mine
CROSS JOIN unnest(
    $1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
    $9::bigint[], $10::double precision[]
) AS change (
    batch_id, jobs_validated, jobs_failed, unsent, in_progress, retries, sent, reported, deadlines_missed,
    last_first_dispatch_at
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
    deadlines_missed = old.deadlines_missed + excluded.deadlines_missed,
    last_first_dispatch_at = greatest(old.last_first_dispatch_at, excluded.last_first_dispatch_at);
