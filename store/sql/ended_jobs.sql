-- Purpose: the next jobs of a batch that ended long ago. Walks over the batches that have jobs here, one probe each, so
--   that it costs as little after ten years of batches as after one; stops at the first that ended long ago.
-- Arguments: $1 until when a batch must have ended, $2 batch_id and $3 job_id behind which to look, $4 limit.
-- Result: batch_id, batch_ended_at and job_id, ascending; all of one batch.
WITH RECURSIVE walked AS (
    SELECT $2::bigint AS batch_id, $3::bigint AS job_id, false AS ended, NULL::double precision AS batch_ended_at
    UNION ALL
    SELECT next.batch_id, 9223372036854775807, next.ended, next.ended_at
    FROM walked
    CROSS JOIN LATERAL (
        SELECT first.batch_id, batch.state <> 'active' AND batch.ended_at <= $1 AS ended, batch.ended_at
        FROM (
            SELECT job.batch_id
            FROM job
            WHERE (job.batch_id, job.job_id) > (walked.batch_id, walked.job_id)
            ORDER BY job.batch_id, job.job_id
            LIMIT 1
        ) AS first
        JOIN batch ON batch.batch_id = first.batch_id
    ) AS next
    WHERE NOT walked.ended
)
SELECT job.batch_id, walked.batch_ended_at, job.job_id
FROM walked
JOIN job ON job.batch_id = walked.batch_id
WHERE walked.ended AND (job.batch_id, job.job_id) > ($2, $3)
ORDER BY job.job_id
LIMIT $4;
