-- Purpose: what hosts said of themselves, in key order. rpc_interval_s moves a tenth of the way to the time since the last
--   request. What was said shortly before the last request that is written changes nothing: two requests of one host may
--   be written in the other order. A last request that lies further ahead was noted while a clock was wrong.
-- Arguments: $1 host_ids, $2 rpc_seqnos, $3 last_rpc_at, then the description, all null when it is as before: $4 host_cpids,
--   $5 domain_names, $6 ncpus, $7 flop_per_s, $8 ram_bytes, $9 disk_free_bytes, $10 on_fractions, $11 active_fractions,
--   $12 gpu_active_fractions, $13 platforms (JSON arrays), $14 os_names, $15 os_versions, $16 cpu_vendors, $17 cpu_models,
--   $18 client_versions, $19 coprocessors (JSON), $20 clock_skew_s, then $21 why they were given no job (JSON), null where
--   they were or wanted none (arrays, the host_ids distinct), $22 by how much a request may be overtaken, s.
-- Result: none.
UPDATE host SET
    rpc_seqno = said.rpc_seqno,
    rpc_interval_s = CASE
        WHEN said.last_rpc_at > host.last_rpc_at
        THEN coalesce(0.9 * host.rpc_interval_s + 0.1 * (said.last_rpc_at - host.last_rpc_at),
                      said.last_rpc_at - host.last_rpc_at)
        ELSE host.rpc_interval_s
    END,
    last_rpc_at = said.last_rpc_at,
    host_cpid = coalesce(said.host_cpid, host.host_cpid),
    domain_name = coalesce(said.domain_name, host.domain_name),
    ncpus = coalesce(said.ncpus, host.ncpus),
    flop_per_s = coalesce(said.flop_per_s, host.flop_per_s),
    ram_bytes = coalesce(said.ram_bytes, host.ram_bytes),
    disk_free_bytes = coalesce(said.disk_free_bytes, host.disk_free_bytes),
    on_fraction = coalesce(said.on_fraction, host.on_fraction),
    active_fraction = coalesce(said.active_fraction, host.active_fraction),
    gpu_active_fraction = coalesce(said.gpu_active_fraction, host.gpu_active_fraction),
    platforms = CASE
        WHEN said.platforms IS NULL THEN host.platforms ELSE ARRAY(SELECT jsonb_array_elements_text(said.platforms))
    END,
    os_name = coalesce(said.os_name, host.os_name),
    os_version = coalesce(said.os_version, host.os_version),
    cpu_vendor = coalesce(said.cpu_vendor, host.cpu_vendor),
    cpu_model = coalesce(said.cpu_model, host.cpu_model),
    client_version = coalesce(said.client_version, host.client_version),
    coprocessors = coalesce(said.coprocessors, host.coprocessors),
    clock_skew_s = coalesce(said.clock_skew_s, host.clock_skew_s),
    refused_at = CASE WHEN said.refused IS NULL THEN host.refused_at ELSE said.last_rpc_at END,
    refused = coalesce(said.refused, host.refused)
FROM (
    SELECT *
    FROM unnest(
        $1::int[], $2::int[], $3::double precision[], $4::text[], $5::text[], $6::int[], $7::double precision[],
        $8::double precision[], $9::double precision[], $10::double precision[], $11::double precision[],
        $12::double precision[], $13::jsonb[], $14::text[], $15::text[], $16::text[], $17::text[], $18::int[], $19::jsonb[],
        $20::double precision[], $21::jsonb[]
    ) AS said (
        host_id, rpc_seqno, last_rpc_at, host_cpid, domain_name, ncpus, flop_per_s, ram_bytes, disk_free_bytes, on_fraction,
        active_fraction, gpu_active_fraction, platforms, os_name, os_version, cpu_vendor, cpu_model, client_version,
        coprocessors, clock_skew_s, refused
    )
    ORDER BY said.host_id
) AS said
WHERE host.host_id = said.host_id
    AND (host.last_rpc_at <= said.last_rpc_at OR host.last_rpc_at > said.last_rpc_at + $22::double precision);
