-- Purpose: how large an app's jobs are, and how long validation takes after a result is back: of its 50 newest batches,
--   from at most 100 jobs of each.
-- Arguments: $1 app_id.
-- Result: typical_flop, validation_lag_s; null where there are none.
WITH recent AS (
    SELECT batch_id
    FROM batch
    WHERE app_id = $1
    ORDER BY batch_id DESC
    LIMIT 50
)
SELECT
    (
        SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY job_class.fpops_est_flop)
        FROM recent
        JOIN job_class USING (batch_id)
    ) AS typical_flop,
    (
        SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY greatest(0, job.ended_at - instance.reported_at))
        FROM recent
        CROSS JOIN LATERAL (
            SELECT first.canonical_instance_id, first.ended_at
            FROM job AS first
            WHERE first.batch_id = recent.batch_id
            ORDER BY first.job_id
            LIMIT 100
        ) AS job
        JOIN instance ON instance.instance_id = job.canonical_instance_id
    ) AS validation_lag_s;
