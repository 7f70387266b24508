-- Purpose: what an ended batch's correction in logical time is made of.
-- Arguments: $1 batch_id.
-- Result: the row of batch_with_counts with refunded_s, what the ordering noted of it (columns noted_*, null where it noted
--   nothing), and what its jobs ask for: the most of its classes, and the mean estimate.
SELECT
    batch_with_counts.*,
    batch.refunded_s,
    true AS explained,
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
    class.cores, class.memory_bytes, class.disk_bytes, class.job_flop, class.max_errors
FROM batch
JOIN batch_with_counts USING (batch_id)
LEFT JOIN batch_order AS noted USING (batch_id)
CROSS JOIN LATERAL (
    SELECT
        max(ncpus) AS cores, max(memory_bytes) AS memory_bytes, max(disk_bytes) AS disk_bytes,
        avg(fpops_est_flop) AS job_flop, min(max_errors) AS max_errors
    FROM job_class
    WHERE job_class.batch_id = $1
) AS class
WHERE batch.batch_id = $1;
