-- Purpose: note how long an app's results take for each estimated flop: the median over at most 100 jobs of each of its 50
--   newest batches, once there are 20 valid results. Batches without a median of their own expect this.
-- Arguments: $1 app_id.
-- Result: none.
UPDATE app SET turnaround_s_per_flop = found.median
FROM (
    SELECT
        count(*) AS n,
        percentile_disc(0.5) WITHIN GROUP (
            ORDER BY greatest(1, instance.reported_at - instance.sent_at) / job_class.fpops_est_flop
        ) AS median
    FROM (
        SELECT batch_id
        FROM batch
        WHERE app_id = $1
        ORDER BY batch_id DESC
        LIMIT 50
    ) AS recent
    CROSS JOIN LATERAL (
        SELECT first.job_id, first.job_class_id
        FROM job AS first
        WHERE first.batch_id = recent.batch_id
        ORDER BY first.job_id
        LIMIT 100
    ) AS job
    JOIN instance ON instance.job_id = job.job_id AND instance.state = 'valid'
    JOIN job_class ON job_class.job_class_id = job.job_class_id
) AS found
WHERE app.app_id = $1 AND found.n >= 20 AND found.median IS DISTINCT FROM app.turnaround_s_per_flop;
