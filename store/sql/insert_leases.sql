-- Purpose: promise hosts' futures to batches, where neither the host nor the batch has a lease.
-- Arguments: $1 host_ids, $2 batch_ids, $3 processor_types, $4 cores, $5 start_at, $6 limit_s, $7 made_at, $8 expires_at
--   (arrays, one entry per lease, by batch).
-- Result: none.
INSERT INTO lease (host_id, batch_id, processor_type, cores, start_at, limit_s, made_at, expires_at)
SELECT *
FROM unnest(
    $1::int[], $2::bigint[], $3::text[], $4::double precision[], $5::double precision[], $6::double precision[],
    $7::double precision[], $8::double precision[]
)
ON CONFLICT DO NOTHING;
