-- Purpose: what submitters used.
-- Arguments: $1 submitter_ids, $2 account_ids, $3 flop, $4 cpu_s, $5 memory_byte_s, $6 gpu_s, $7 at (arrays),
--   $8 accuracies as JSON arrays.
-- Result: none.
INSERT INTO usage (submitter_id, account_id, flop, cpu_s, memory_byte_s, gpu_s, at, accuracies)
SELECT
    submitter_id, account_id, flop, cpu_s, memory_byte_s, gpu_s, at,
    ARRAY(SELECT value::double precision FROM jsonb_array_elements_text(used.accuracies) WITH ORDINALITY ORDER BY ordinality)
FROM unnest(
    $1::int[], $2::int[], $3::double precision[], $4::double precision[], $5::double precision[],
    $6::double precision[], $7::double precision[], $8::jsonb[]
) AS used (submitter_id, account_id, flop, cpu_s, memory_byte_s, gpu_s, at, accuracies)
ORDER BY submitter_id, account_id
ON CONFLICT (submitter_id, account_id) DO UPDATE SET
    flop = excluded.flop, cpu_s = excluded.cpu_s, memory_byte_s = excluded.memory_byte_s, gpu_s = excluded.gpu_s,
    at = excluded.at, accuracies = excluded.accuracies;
