-- Purpose: what a host is like, resource by resource, and what the largest has.
-- Arguments: $1 instant since which a call counts.
-- Result: one row: hosts, medians of ncpus, ram_bytes, disk_free_bytes and flop_per_s, the most of ncpus, ram_bytes and
--   disk_free_bytes, and the speed of all together, availability included; nulls without hosts.
SELECT
    count(*) AS hosts,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY ncpus) AS cores,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY ram_bytes) AS memory_bytes,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY disk_free_bytes) AS disk_bytes,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY flop_per_s) AS flop_per_s,
    max(ncpus)::double precision AS most_cores,
    max(ram_bytes) AS most_memory_bytes,
    max(disk_free_bytes) AS most_disk_bytes,
    coalesce(sum(ncpus * flop_per_s * on_fraction * active_fraction), 0) AS pool_flop_per_s
FROM host
WHERE last_rpc_at >= $1;
