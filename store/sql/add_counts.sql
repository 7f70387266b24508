-- Purpose: add to the counters of batches, in key order so that no two transactions wait for each other.
-- Arguments: $1 batch_ids, $2 shards, $3 jobs_validated, $4 jobs_failed, $5 unsent, $6 in_progress, $7 retries, $8 sent,
--   $9 reported, $10 deadlines_missed, $11 last_first_dispatch_at or nulls (arrays, keys distinct).
-- Result: none.
INSERT INTO batch_count AS old (
    batch_id, shard, jobs_validated, jobs_failed, unsent, in_progress, retries, sent, reported, deadlines_missed,
    last_first_dispatch_at
)
SELECT *
FROM unnest(
    $1::bigint[], $2::smallint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
    $9::bigint[], $10::bigint[], $11::double precision[]
) AS change (batch_id, shard)
ORDER BY change.batch_id, change.shard
ON CONFLICT (batch_id, shard) DO UPDATE SET
    jobs_validated = old.jobs_validated + excluded.jobs_validated,
    jobs_failed = old.jobs_failed + excluded.jobs_failed,
    unsent = old.unsent + excluded.unsent,
    in_progress = old.in_progress + excluded.in_progress,
    retries = old.retries + excluded.retries,
    sent = old.sent + excluded.sent,
    reported = old.reported + excluded.reported,
    deadlines_missed = old.deadlines_missed + excluded.deadlines_missed,
    last_first_dispatch_at = greatest(old.last_first_dispatch_at, excluded.last_first_dispatch_at);
