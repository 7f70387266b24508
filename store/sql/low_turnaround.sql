-- Purpose: the hosts with low turnaround, the accelerable apps, and the median turnaround of batches, as batch acceleration
--   counts them (domain/acceleration.py, which this keeps to).
-- Arguments: $1 since when batches count, $2 least results of a batch, $3 what a time-out counts in medians, $4 a host's
--   mean below which it is low, $5 more hosts than this an app must have, $6 more than this share of them low.
-- Result: kind (host, app, batch), id, and the median of a batch.
WITH recent AS (
    SELECT batch_id, app_id FROM batch WHERE created_at >= $1
), ended AS (
    SELECT batch_id, host_id, state, sent_at, reported_at FROM instance
    UNION ALL
    SELECT batch_id, host_id, state, sent_at, reported_at FROM finished_instance WHERE batch_ended_at >= $1
), returned AS (
    SELECT
        ended.batch_id, recent.app_id, ended.host_id,
        CASE WHEN ended.state = 'timed_out' THEN NULL ELSE ended.reported_at - ended.sent_at END AS turnaround_s
    FROM ended
    JOIN recent USING (batch_id)
    WHERE ended.state IN ('reported', 'inconclusive', 'valid', 'invalid', 'too_late', 'timed_out')
), median AS (
    SELECT batch_id, percentile_cont(0.5) WITHIN GROUP (ORDER BY turnaround_s) AS median_s
    FROM returned
    GROUP BY batch_id
    HAVING count(turnaround_s) >= $2
), low AS (
    SELECT host_id
    FROM returned
    JOIN median USING (batch_id)
    GROUP BY host_id
    HAVING avg(CASE
        WHEN turnaround_s IS NULL THEN $3::double precision
        WHEN median_s > 0 THEN turnaround_s / median_s
        ELSE 1
    END) < $4::double precision
), accelerable AS (
    SELECT app_id
    FROM (
        SELECT DISTINCT app_id, host_id FROM returned JOIN median USING (batch_id) WHERE turnaround_s IS NOT NULL
    ) AS of_app
    LEFT JOIN low ON low.host_id = of_app.host_id
    GROUP BY app_id
    HAVING count(*) > $5::int AND count(low.host_id) > $6::double precision * count(*)
)
SELECT 'host' AS kind, host_id AS id, NULL::double precision AS median_s FROM low
UNION ALL
SELECT 'app', app_id, NULL FROM accelerable
UNION ALL
SELECT 'batch', batch_id, median_s FROM median
ORDER BY kind, id;
