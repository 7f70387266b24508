-- Purpose: what a dispatch fixes for its job: the first sending, the homogeneous-redundancy class, the copies wanted.
-- Arguments: $1 job_ids, $2 first_sent_at, $3 hr_classes, $4 copies (arrays, the job_ids distinct).
-- Result: none.
WITH locked AS (
    SELECT sent.*
    FROM unnest($1::bigint[], $2::double precision[], $3::int[], $4::int[])
        AS sent (job_id, first_sent_at, hr_class, copies)
    JOIN job ON job.job_id = sent.job_id
    ORDER BY job.job_id
    FOR NO KEY UPDATE OF job
)
UPDATE job SET
    first_sent_at = coalesce(job.first_sent_at, sent.first_sent_at),
    hr_class = CASE WHEN job.hr_class = 0 THEN sent.hr_class ELSE job.hr_class END,
    copies = greatest(job.copies, sent.copies)
FROM locked AS sent
WHERE job.job_id = sent.job_id;
