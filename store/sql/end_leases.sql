-- Purpose: end leases, each with its reason.
-- Arguments: $1 host_ids, $2 batch_ids, $3 reasons (arrays, one entry per lease), $4 ended_at.
-- Result: none.
UPDATE lease
SET ended_at = $4, because = ended.because
FROM unnest($1::int[], $2::bigint[], $3::text[]) AS ended (host_id, batch_id, because)
WHERE lease.host_id = ended.host_id AND lease.batch_id = ended.batch_id AND lease.ended_at IS NULL;
