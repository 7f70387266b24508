-- Bring what was stored before fields had bounds (domain/bounds.py) within them: no date and no sum may overflow.
UPDATE job_class SET
    fpops_est_flop = least(greatest(fpops_est_flop, 1), 1e21),
    fpops_bound_flop = least(greatest(fpops_bound_flop, 1), 1e24),
    memory_bytes = least(memory_bytes, 1e15),
    disk_bytes = least(disk_bytes, 1e15),
    delay_bound_s = least(greatest(delay_bound_s, 1), 315360000),
    ncpus = least(greatest(ncpus, 0.001), 4096),
    tolerance = least(tolerance, 1)
WHERE
    fpops_est_flop NOT BETWEEN 1 AND 1e21 OR fpops_bound_flop NOT BETWEEN 1 AND 1e24
    OR memory_bytes > 1e15 OR disk_bytes > 1e15
    OR delay_bound_s NOT BETWEEN 1 AND 315360000 OR ncpus NOT BETWEEN 0.001 AND 4096 OR tolerance > 1;
UPDATE plan_class SET
    ncpus = least(ncpus, 4096),
    gpu_count = least(greatest(gpu_count, 0.001), 64),
    min_gpu_ram_bytes = least(min_gpu_ram_bytes, 1e15),
    min_host_ncpus = least(min_host_ncpus, 4096),
    min_host_ram_bytes = least(min_host_ram_bytes, 1e15),
    cpu_speed_fraction = least(greatest(cpu_speed_fraction, 1e-6), 1e6),
    gpu_speed_fraction = least(greatest(gpu_speed_fraction, 1e-6), 1e6)
WHERE
    ncpus > 4096 OR gpu_count NOT BETWEEN 0.001 AND 64 OR min_host_ncpus > 4096
    OR min_gpu_ram_bytes > 1e15 OR min_host_ram_bytes > 1e15
    OR cpu_speed_fraction NOT BETWEEN 1e-6 AND 1e6 OR gpu_speed_fraction NOT BETWEEN 1e-6 AND 1e6;
UPDATE account SET shares = 1e9 WHERE shares > 1e9;
UPDATE membership SET shares = 1e9 WHERE shares > 1e9;
UPDATE account_grant SET granted_su = least(granted_su, 1e15), period_s = least(period_s, 315360000)
WHERE granted_su > 1e15 OR period_s > 315360000;
