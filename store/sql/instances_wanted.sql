-- Purpose: how many results a batch needs, to know what of its instances is overhead.
-- Arguments: $1 batch_id.
-- Result: one row: wanted, the sum over all its jobs of the larger of quorum and copies.
SELECT coalesce(sum(greatest(job_class.quorum, job.copies)), 0)::bigint AS wanted
FROM job
JOIN job_class USING (job_class_id)
WHERE job.batch_id = $1;
