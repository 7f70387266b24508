-- Purpose: end those of some locked batches whose jobs are all valid or failed.
-- Arguments: $1 batch_ids, $2 ended_at (arrays).
-- Result: none.
UPDATE batch SET state = 'complete', ended_at = settled.ended_at
FROM unnest($1::bigint[], $2::double precision[]) AS settled (batch_id, ended_at)
WHERE batch.batch_id = settled.batch_id
    AND batch.state = 'active'
    AND batch.jobs_total = (
        SELECT sum(jobs_validated + jobs_failed) FROM batch_count WHERE batch_count.batch_id = settled.batch_id
    );
