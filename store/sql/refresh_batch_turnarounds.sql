-- Purpose: note the median turnaround of an app's active batches (the 1000 newest), from the instances of at most 400 jobs of
--   each. What is still out or was given up counts as longer than all that is back, so that a young batch is not judged
--   by its fastest hosts; a batch has none before 20 results are valid and half of what was sent is back. Changes of less
--   than a twentieth are not written. A batch that somebody else is changing is left for the next time.
-- Arguments: $1 app_id.
-- Result: none.
WITH sampled AS (
    SELECT
        recent.batch_id,
        percentile_disc(0.5) WITHIN GROUP (
            ORDER BY
                CASE WHEN instance.state = 'valid' THEN greatest(1, instance.reported_at - instance.sent_at)
                ELSE 'infinity'::double precision END
        ) AS median
    FROM (
        SELECT batch_id
        FROM batch
        WHERE state = 'active' AND app_id = $1
        ORDER BY batch_id DESC
        LIMIT 1000
    ) AS recent
    CROSS JOIN LATERAL (
        SELECT first.job_id
        FROM job AS first
        WHERE first.batch_id = recent.batch_id
        ORDER BY first.job_id
        LIMIT 400
    ) AS job
    JOIN instance ON instance.job_id = job.job_id AND instance.state IN ('valid', 'in_progress', 'timed_out')
    GROUP BY recent.batch_id
    HAVING count(*) FILTER (WHERE instance.state = 'valid') >= 20
),
locked AS (
    SELECT batch.batch_id, sampled.median
    FROM batch
    JOIN sampled USING (batch_id)
    WHERE sampled.median < 'infinity'
        AND (
            batch.median_turnaround_s IS NULL
            OR abs(batch.median_turnaround_s - sampled.median) >= sampled.median / 20
        )
    ORDER BY batch.batch_id
    FOR NO KEY UPDATE OF batch SKIP LOCKED
)
UPDATE batch SET median_turnaround_s = locked.median FROM locked WHERE batch.batch_id = locked.batch_id;
