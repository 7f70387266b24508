-- Purpose: how many results a batch needs, and how many copies of its jobs were made beyond that.
-- Arguments: $1 batch_id.
-- Result: one row: wanted, the sum over all its jobs of the larger of quorum and copies; copies, that of tail_copies.
SELECT
    coalesce(sum(greatest(job_class.quorum, job.copies)), 0)::bigint AS wanted,
    coalesce(sum(job.tail_copies), 0)::bigint AS copies
FROM job
JOIN job_class USING (job_class_id)
WHERE job.batch_id = $1;
