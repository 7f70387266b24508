-- Purpose: what hosts said of themselves. rpc_interval_s moves a tenth of the way to the time since the last request.
-- Arguments: $1 host_ids, $2 host_cpids, $3 rpc_seqnos, $4 last_rpc_at, $5 domain_names, $6 ncpus, $7 flop_per_s, $8 ram_bytes,
--   $9 disk_free_bytes, $10 on_fractions, $11 active_fractions, $12 gpu_active_fractions, $13 platforms (JSON arrays),
--   $14 os_names, $15 os_versions, $16 cpu_vendors, $17 cpu_models, $18 client_versions, $19 coprocessors (JSON)
--   (arrays, the host_ids distinct).
-- Result: none.
WITH locked AS (
    SELECT said.*
    FROM unnest(
        $1::int[], $2::text[], $3::int[], $4::double precision[], $5::text[], $6::int[], $7::double precision[],
        $8::double precision[], $9::double precision[], $10::double precision[], $11::double precision[],
        $12::double precision[], $13::jsonb[], $14::text[], $15::text[], $16::text[], $17::text[], $18::int[], $19::jsonb[]
    ) AS said (
        host_id, host_cpid, rpc_seqno, last_rpc_at, domain_name, ncpus, flop_per_s, ram_bytes, disk_free_bytes, on_fraction,
        active_fraction, gpu_active_fraction, platforms, os_name, os_version, cpu_vendor, cpu_model, client_version,
        coprocessors
    )
    JOIN host ON host.host_id = said.host_id
    ORDER BY host.host_id
    FOR NO KEY UPDATE OF host
)
UPDATE host SET
    host_cpid = said.host_cpid,
    rpc_seqno = said.rpc_seqno,
    rpc_interval_s = CASE
        WHEN said.last_rpc_at > host.last_rpc_at
        THEN coalesce(0.9 * host.rpc_interval_s + 0.1 * (said.last_rpc_at - host.last_rpc_at),
                      said.last_rpc_at - host.last_rpc_at)
        ELSE host.rpc_interval_s
    END,
    last_rpc_at = said.last_rpc_at,
    domain_name = said.domain_name,
    ncpus = said.ncpus,
    flop_per_s = said.flop_per_s,
    ram_bytes = said.ram_bytes,
    disk_free_bytes = said.disk_free_bytes,
    on_fraction = said.on_fraction,
    active_fraction = said.active_fraction,
    gpu_active_fraction = said.gpu_active_fraction,
    platforms = ARRAY(SELECT jsonb_array_elements_text(said.platforms)),
    os_name = said.os_name,
    os_version = said.os_version,
    cpu_vendor = said.cpu_vendor,
    cpu_model = said.cpu_model,
    client_version = said.client_version,
    coprocessors = said.coprocessors
FROM locked AS said
WHERE host.host_id = said.host_id;
