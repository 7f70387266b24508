-- Purpose: the job classes of a batch.
-- Arguments: $1 batch_id.
-- Result: job classes by id.
SELECT job_class_id, batch_id, fpops_est_flop, fpops_bound_flop, memory_bytes, disk_bytes, delay_bound_s, ncpus, quorum,
       max_errors, max_instances, hr_type, validator, tolerance, inputs, outputs
FROM job_class
WHERE batch_id = $1
ORDER BY job_class_id;
