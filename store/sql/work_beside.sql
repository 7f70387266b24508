-- Purpose: what the jobs of an app's other batches needed that are over, and how much more than all of them need was sent.
-- Arguments: $1 the batch they are beside, $2 app_id, $3 since when batches count, $4 how many of the project's last.
-- Result: one row: needed and extra, in instances; a job is taken to need the least quorum of its batch.
SELECT
    coalesce(sum(quorum * (jobs_validated + jobs_failed)), 0)::bigint AS needed,
    coalesce(sum(greatest(0, sent + unsent - quorum * jobs_total)), 0)::bigint AS extra
FROM (
    SELECT
        sent, unsent, jobs_total, jobs_validated, jobs_failed,
        (SELECT coalesce(min(quorum), 1) FROM job_class WHERE job_class.batch_id = batch_with_counts.batch_id) AS quorum
    FROM batch_with_counts
    WHERE batch_id > (SELECT max(batch_id) FROM batch) - $4::bigint
        AND batch_id <> $1::bigint
        AND app_id = $2::bigint
        AND created_at >= $3::double precision
) AS beside;
