-- Purpose: how submitters stand, for who submits next.
-- Arguments: $1 submitter_ids, $2 account_ids, $3 now, $4 standings as JSON (arrays but for now).
-- Result: none.
INSERT INTO usage (submitter_id, account_id, flop, cpu_s, memory_byte_s, gpu_s, at, standing)
SELECT submitter_id, account_id, 0, 0, 0, 0, $3::double precision, standing
FROM unnest($1::int[], $2::int[], $4::jsonb[]) AS stands (submitter_id, account_id, standing)
ORDER BY submitter_id, account_id
ON CONFLICT (submitter_id, account_id) DO UPDATE SET standing = excluded.standing
WHERE usage.standing IS DISTINCT FROM excluded.standing;
