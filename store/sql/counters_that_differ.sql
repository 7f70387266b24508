-- Purpose: counters that differ from what the rows say, those of batches whose month was purged left out, and batches that
--   wait without being marked; reads every job and instance, those of the history too.
-- Arguments: none.
-- Result: batch_id, counted and expected (JSON), by batch.
WITH expected AS (
    SELECT
        batch_id,
        sum(jobs_validated)::bigint AS jobs_validated, sum(jobs_failed)::bigint AS jobs_failed,
        sum(unsent)::bigint AS unsent, sum(in_progress)::bigint AS in_progress, sum(retries)::bigint AS retries,
        sum(sent)::bigint AS sent, sum(reported)::bigint AS reported,
        sum(deadlines_missed)::bigint AS deadlines_missed
    FROM (
        SELECT
            batch_id, 0 AS jobs_validated, 0 AS jobs_failed,
            (state = 'unsent')::int AS unsent,
            (state = 'in_progress')::int AS in_progress,
            (state IN ('invalid', 'failed', 'timed_out', 'aborted', 'too_late'))::int AS retries,
            (sent_at IS NOT NULL)::int AS sent,
            (reported_at IS NOT NULL)::int AS reported,
            (state = 'timed_out' OR coalesce(reported_at > due_at, false))::int AS deadlines_missed
        FROM (
            SELECT batch_id, state, sent_at, due_at, reported_at FROM instance
            UNION ALL
            SELECT batch_id, state, sent_at, due_at, reported_at FROM finished_instance
        ) AS every_instance
        UNION ALL
        SELECT
            batch_id, (state = 'valid')::int, (state = 'failed')::int, 0, 0, 0, 0, 0, 0
        FROM (
            SELECT batch_id, job_id, state FROM job
            UNION ALL
            SELECT batch_id, job_id, state FROM finished_job
        ) AS every_job
    ) AS row
    GROUP BY batch_id
),
counted AS (
    SELECT
        batch_id, sum(jobs_validated)::bigint AS jobs_validated, sum(jobs_failed)::bigint AS jobs_failed,
        sum(unsent)::bigint AS unsent, sum(in_progress)::bigint AS in_progress, sum(retries)::bigint AS retries,
        sum(sent)::bigint AS sent, sum(reported)::bigint AS reported,
        sum(deadlines_missed)::bigint AS deadlines_missed
    FROM batch_count
    GROUP BY batch_id
)
SELECT batch_id, to_jsonb(counted) AS counted, to_jsonb(expected) AS expected
FROM counted
FULL JOIN expected USING (batch_id)
WHERE to_jsonb(counted) IS DISTINCT FROM to_jsonb(expected)
    AND NOT EXISTS (
        SELECT
        FROM batch
        JOIN finished_month
            ON batch.ended_at >= finished_month.starts_at AND batch.ended_at < finished_month.ends_at
        WHERE batch.batch_id = coalesce(counted.batch_id, expected.batch_id) AND finished_month.purged_at IS NOT NULL
    )
UNION ALL
SELECT batch_id, jsonb_build_object('waiting', false), jsonb_build_object('waiting', true)
FROM batch
WHERE state = 'active' AND NOT waiting
    AND EXISTS (SELECT FROM instance WHERE instance.batch_id = batch.batch_id AND instance.state = 'unsent')
ORDER BY batch_id;
