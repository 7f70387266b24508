-- Purpose: a new host.
-- Arguments: $1 volunteer_id, $2 created_at, $3 rpc_seqno, $4 last_rpc_at, $5 host_cpid, $6 domain_name, $7 ncpus,
--   $8 flop_per_s, $9 ram_bytes, $10 disk_free_bytes, $11 on_fraction, $12 active_fraction, $13 gpu_active_fraction,
--   $14 platforms, $15 os_name, $16 os_version, $17 cpu_vendor, $18 cpu_model, $19 client_version,
--   $20 coprocessors (JSON), $21 clock_skew_s.
-- Result: host_id.
INSERT INTO host (
    volunteer_id, created_at, rpc_seqno, last_rpc_at, host_cpid, domain_name, ncpus, flop_per_s, ram_bytes,
    disk_free_bytes, on_fraction, active_fraction, gpu_active_fraction, platforms, os_name, os_version, cpu_vendor,
    cpu_model, client_version, coprocessors, clock_skew_s
)
VALUES (
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20::jsonb, $21
)
RETURNING host_id;
