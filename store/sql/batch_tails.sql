-- Purpose: the active batches of which little is still open, or little is still to be sent.
-- Arguments: $1 share of a batch's jobs, $2 jobs (the larger of both counts), $3 limit, $4 unsent instances per job.
-- Result: rows of batch_with_counts by (order_tier, order_key, batch_id).
SELECT *
FROM batch_with_counts
WHERE state = 'active'
    AND jobs_total - jobs_validated - jobs_failed >= 1
    AND (
        jobs_total - jobs_validated - jobs_failed <= greatest(ceil($1::double precision * jobs_total), $2::int)
        OR unsent <= $4::double precision * jobs_total
    )
ORDER BY order_tier, order_key, batch_id
LIMIT $3;
