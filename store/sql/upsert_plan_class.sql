-- Purpose: insert or replace a plan class.
-- Arguments: $1 name, $2 ncpus, $3 gpu_type or null, $4 gpu_count, $5 min_gpu_ram_bytes, $6 min_driver_version,
--   $7 min_host_ncpus, $8 min_host_ram_bytes, $9 os_pattern, $10 cpu_speed_fraction, $11 gpu_speed_fraction.
-- Result: none.
INSERT INTO plan_class (
    name, ncpus, gpu_type, gpu_count, min_gpu_ram_bytes, min_driver_version, min_host_ncpus, min_host_ram_bytes, os_pattern,
    cpu_speed_fraction, gpu_speed_fraction
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT (name) DO UPDATE SET
    ncpus = excluded.ncpus,
    gpu_type = excluded.gpu_type,
    gpu_count = excluded.gpu_count,
    min_gpu_ram_bytes = excluded.min_gpu_ram_bytes,
    min_driver_version = excluded.min_driver_version,
    min_host_ncpus = excluded.min_host_ncpus,
    min_host_ram_bytes = excluded.min_host_ram_bytes,
    os_pattern = excluded.os_pattern,
    cpu_speed_fraction = excluded.cpu_speed_fraction,
    gpu_speed_fraction = excluded.gpu_speed_fraction;
