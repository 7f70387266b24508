-- Purpose: the active batches that are due for a forecast if jobs of them were over since the last one, the longest first.
-- Arguments: $1 now, $2 pause_s, $3 timer_s, $4 the part of the time that was left for which validations are gathered.
-- Result: batch_id, made_at (null when never), completion_at, jobs_over_then, jobs_over.
SELECT
    batch.batch_id, last.made_at, batch.completion_at, coalesce(last.jobs_over, 0) AS jobs_over_then,
    total.jobs_over
FROM batch
LEFT JOIN batch_forecast AS last ON last.batch_id = batch.batch_id
CROSS JOIN LATERAL (
    SELECT coalesce(sum(jobs_validated + jobs_failed), 0)::bigint AS jobs_over
    FROM batch_count
    WHERE batch_count.batch_id = batch.batch_id
) AS total
WHERE batch.state = 'active' AND (
    last.made_at IS NULL
    OR last.made_at <= $1::double precision - least($3::double precision, greatest(
        $2::double precision, $4::double precision * coalesce(batch.completion_at - last.made_at, 0)
    ))
)
ORDER BY last.made_at NULLS FIRST, batch.batch_id;
