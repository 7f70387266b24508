-- Purpose: add to what submitters used in windows of time.
-- Arguments: $1 submitter_ids, $2 account_ids, $3 levels, $4 starts_at, $5 length_s, $6 flop (arrays).
-- Result: none.
INSERT INTO usage_window AS old (submitter_id, account_id, level, starts_at, length_s, flop)
SELECT *
FROM unnest(
    $1::int[], $2::int[], $3::text[], $4::double precision[], $5::double precision[], $6::double precision[]
) AS used (submitter_id, account_id, level, starts_at, length_s, flop)
ORDER BY submitter_id, account_id, level, starts_at, length_s
ON CONFLICT (submitter_id, account_id, level, starts_at, length_s) DO UPDATE SET flop = old.flop + excluded.flop;
