-- Purpose: what jobs took of their estimates, from the first 100 jobs of each batch: elapsed time * cores * speed of the host
--   / estimate. Results of GPU versions are left out: a host's speed is its CPUs'.
-- Arguments: $1 batch_ids.
-- Result: batch_id, used_fraction, by batch and the instance that came back last first.
SELECT wanted.batch_id, instance.elapsed_s * class.ncpus * host.flop_per_s / class.fpops_est_flop AS used_fraction
FROM unnest($1::bigint[]) AS wanted (batch_id)
CROSS JOIN LATERAL (
    SELECT job.job_id, job.job_class_id
    FROM job
    WHERE job.batch_id = wanted.batch_id
    ORDER BY job.job_id
    LIMIT 100
) AS first
JOIN job_class AS class ON class.job_class_id = first.job_class_id
JOIN instance ON instance.job_id = first.job_id AND instance.state = 'valid' AND instance.elapsed_s > 0
JOIN host ON host.host_id = instance.host_id
JOIN app_version USING (app_version_id)
JOIN plan_class ON plan_class.name = app_version.plan_class AND plan_class.gpu_type IS NULL
ORDER BY wanted.batch_id, instance.reported_at DESC, instance.instance_id;
