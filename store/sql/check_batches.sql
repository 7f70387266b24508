-- Purpose: batches that lack jobs or have too many, end with open jobs, go on without any, or do not say why a job failed;
--   those whose month was purged left out. Reads every job, those of the history too.
-- Arguments: $1 how many at most.
-- Result: thing, because; by batch.
WITH every_job AS (
    SELECT batch_id, state, failure FROM job
    UNION ALL
    SELECT batch_id, state, failure FROM finished_job
),
of_batch AS (
    SELECT
        batch_id, count(*) AS jobs,
        count(*) FILTER (WHERE state = 'open') AS open,
        count(*) FILTER (WHERE state = 'cancelled') AS cancelled,
        count(*) FILTER (WHERE state = 'failed' AND coalesce(btrim(failure), '') = '') AS unexplained
    FROM every_job
    GROUP BY batch_id
)
SELECT
    'batch ' || batch.batch_id AS thing,
    CASE
        WHEN coalesce(jobs, 0) <> jobs_total THEN format('it has %s jobs of %s', coalesce(jobs, 0), jobs_total)
        WHEN batch.state = 'complete' AND open > 0 THEN format('it is complete, and %s jobs of it are open', open)
        WHEN batch.state = 'complete' AND cancelled > 0 THEN format('it is complete, and %s jobs were cancelled', cancelled)
        WHEN batch.state = 'active' AND open = 0 THEN 'it is active, and no job of it is open'
        ELSE format('%s jobs of it failed without a reason', unexplained)
    END AS because
FROM batch
LEFT JOIN of_batch USING (batch_id)
WHERE (
        coalesce(jobs, 0) <> jobs_total
        OR (batch.state = 'complete' AND open + cancelled > 0)
        OR (batch.state = 'active' AND open = 0)
        OR unexplained > 0
    )
    AND NOT EXISTS (
        SELECT
        FROM finished_month
        WHERE batch.ended_at >= finished_month.starts_at AND batch.ended_at < finished_month.ends_at
            AND finished_month.purged_at IS NOT NULL
    )
ORDER BY batch.batch_id
LIMIT $1;
