-- Purpose: every plan class.
-- Arguments: none.
-- Result: plan classes by name.
SELECT
    name, ncpus, gpu_type, gpu_count, min_gpu_ram_bytes, min_driver_version, min_host_ncpus, min_host_ram_bytes, os_pattern,
    cpu_speed_fraction, gpu_speed_fraction
FROM plan_class
ORDER BY name;
