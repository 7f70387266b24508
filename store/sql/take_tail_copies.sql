-- Purpose: count copies of locked jobs that are as they were when the copies were decided.
-- Arguments: $1 job_ids, $2 how many instances each had, $3 how many copies, $4 what its most instances are raised by
--   (arrays, the job_ids distinct).
-- Result: job_id, batch_id and job_class_id of those that get one.
UPDATE job SET
    tail_copies = job.tail_copies + 1,
    more_instances = job.more_instances + wanted.more_instances
FROM unnest($1::bigint[], $2::int[], $3::int[], $4::int[]) AS wanted (job_id, instances, tail_copies, more_instances)
WHERE job.job_id = wanted.job_id
    AND job.state = 'open'
    AND job.tail_copies = wanted.tail_copies
    AND (SELECT count(*) FROM instance WHERE instance.job_id = wanted.job_id) = wanted.instances
RETURNING job.job_id, job.batch_id, job.job_class_id;
