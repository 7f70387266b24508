-- Purpose: active hosts by what makes them alike for homogeneous redundancy, and by what they can run.
-- Arguments: $1 instant since which a call counts.
-- Result: rows (os_name, cpu_vendor, platforms, hosts, cores, flop_per_s of all, mean seconds between calls).
SELECT
    os_name, cpu_vendor, platforms, count(*) AS hosts, sum(ncpus)::double precision AS cores,
    sum(ncpus * flop_per_s * on_fraction * active_fraction) AS flop_per_s, coalesce(avg(rpc_interval_s), 0) AS interval_s
FROM host
WHERE last_rpc_at >= $1
GROUP BY os_name, cpu_vendor, platforms
ORDER BY os_name, cpu_vendor, platforms;
