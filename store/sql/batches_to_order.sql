-- Purpose: every active batch, and every other one that something is still to be charged for.
-- Arguments: none.
-- Result: rows of batch_with_counts by batch_id with refunded_s, with what the ordering noted of each (columns noted_*, null where it noted
--   nothing yet), whether it is explained, and what its jobs ask for: the most of its classes, and the mean estimate.
SELECT
    batch_with_counts.*,
    (SELECT refunded_s FROM batch WHERE batch.batch_id = wanted.batch_id) AS refunded_s,
    noted.waited_s AS noted_waited_s,
    noted.waiting_since AS noted_waiting_since,
    noted.bypassed AS noted_bypassed,
    noted.sent AS noted_sent,
    noted.charged AS noted_charged,
    noted.used AS noted_used,
    noted.charged_at AS noted_charged_at,
    noted.used_fraction AS noted_used_fraction,
    noted.sampled AS noted_sampled,
    noted.rate AS noted_rate,
    EXISTS (SELECT FROM batch_breakdown WHERE batch_breakdown.batch_id = wanted.batch_id) AS explained,
    class.cores, class.memory_bytes, class.disk_bytes, class.job_flop, class.max_errors
FROM (
    SELECT batch_id FROM batch WHERE state = 'active'
    UNION
    SELECT batch_id FROM batch_order
) AS wanted
JOIN batch_with_counts ON batch_with_counts.batch_id = wanted.batch_id
LEFT JOIN LATERAL (
    SELECT * FROM batch_order WHERE batch_order.batch_id = wanted.batch_id LIMIT 1  -- by its key, one after the other
) AS noted ON true
CROSS JOIN LATERAL (
    SELECT
        max(ncpus) AS cores, max(memory_bytes) AS memory_bytes, max(disk_bytes) AS disk_bytes,
        avg(fpops_est_flop) AS job_flop, min(max_errors) AS max_errors
    FROM job_class
    WHERE job_class.batch_id = wanted.batch_id
) AS class
ORDER BY wanted.batch_id;
