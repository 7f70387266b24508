-- Purpose: charge submitters' logical times for what batches that are over used. Whoever submits just now is left for the next
--   time, and so is a batch that was charged otherwise meanwhile.
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
