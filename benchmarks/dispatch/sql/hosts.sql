-- Purpose: hosts 1 to $1, two per volunteer; the CPID of number n is md5('host n').
-- Arguments: $1 how many, $2 created_at, $3 last_rpc_at, $4 processors.
-- Result: none.
INSERT INTO host (
    host_id, volunteer_id, host_cpid, rpc_seqno, created_at, last_rpc_at, rpc_interval_s, domain_name, ncpus, flop_per_s,
    ram_bytes, disk_free_bytes, on_fraction, active_fraction, gpu_active_fraction, platforms, os_name, os_version,
    client_version
)
SELECT
    n, (n + 1) / 2, md5('host ' || n), 1, $2::double precision, $3::double precision, 3600, 'host' || n || '.example',
    $4::int, 1e9, 2e10, 8e10, 1, 1, 1, '{x86_64-pc-linux-gnu}', 'Linux Debian', 'Debian GNU/Linux 12', 72005
FROM generate_series(1, $1::int) AS n
ORDER BY n;
