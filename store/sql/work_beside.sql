-- Purpose: what the other batches of an app had sent lately, and how much of it was more than their jobs need.
-- Arguments: $1 the batch they are beside, $2 app_id, $3 since when batches count, $4 how many of the project's last.
-- Result: one row: needed and extra, in instances; a job is taken to need the least quorum of its batch.
SELECT
    coalesce(sum(least(sent, greatest(0, wanted - unsent))), 0)::bigint AS needed,
    coalesce(sum(greatest(0, sent + unsent - wanted)), 0)::bigint AS extra
FROM (
    SELECT
        batch_with_counts.sent, batch_with_counts.unsent,
        batch_with_counts.jobs_total * (
            SELECT coalesce(min(quorum), 1) FROM job_class WHERE job_class.batch_id = batch_with_counts.batch_id
        ) AS wanted
    FROM batch_with_counts
    WHERE batch_id > (SELECT max(batch_id) FROM batch) - $4::bigint
        AND batch_id <> $1::bigint
        AND app_id = $2::bigint
        AND created_at >= $3::double precision
) AS beside;
