-- Purpose: a new job class.
-- Arguments: $1 batch_id, $2 fpops_est_flop, $3 fpops_bound_flop, $4 memory_bytes, $5 disk_bytes, $6 delay_bound_s, $7 ncpus,
--   $8 quorum, $9 max_errors, $10 max_instances, $11 hr_type, $12 validator, $13 tolerance, $14 inputs, $15 outputs
--   (JSON).
-- Result: job_class_id.
INSERT INTO job_class (
    batch_id, fpops_est_flop, fpops_bound_flop, memory_bytes, disk_bytes, delay_bound_s, ncpus, quorum, max_errors,
    max_instances, hr_type, validator, tolerance, inputs, outputs
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14::jsonb, $15::jsonb)
RETURNING job_class_id;
