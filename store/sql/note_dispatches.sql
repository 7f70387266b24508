-- Purpose: what a dispatch fixes for its job: the homogeneous-redundancy class, the copies wanted. In key order.
-- Arguments: $1 job_ids, $2 hr_classes, $3 copies (arrays, the job_ids distinct).
-- Result: job_id of each; left out when another transaction fixed another class.
UPDATE job SET
    hr_class = sent.hr_class,
    copies = greatest(job.copies, sent.copies)
FROM (
    SELECT *
    FROM unnest($1::bigint[], $2::int[], $3::int[]) AS sent (job_id, hr_class, copies)
    ORDER BY sent.job_id
) AS sent
WHERE job.job_id = sent.job_id AND job.hr_class IN (0, sent.hr_class)
RETURNING job.job_id;
