-- Purpose: what a ranking asks of each host: whether it is active, and how much of the time it computes.
-- Arguments: $1 since when an active host has called.
-- Result: the fields of store/hav_tables.py HOST_FIELDS, by host_id.
SELECT
    host_id, last_rpc_at >= $1::double precision AS active,
    greatest(0.01, on_fraction * active_fraction)::real AS cpu_share,
    greatest(0.01, on_fraction * gpu_active_fraction)::real AS gpu_share
FROM host
ORDER BY host_id
