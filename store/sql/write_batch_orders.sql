-- Purpose: note what the ordering remembers of batches.
-- Arguments: $1 batch_ids (ascending), $2 waited_s, $3 waiting_since or nulls, $4 bypassed, $5 sent, $6 charged, $7 used,
--   $8 charged_at, $9 used_fraction, $10 sampled, $11 rate (arrays).
-- Result: none.
INSERT INTO batch_order (
    batch_id, waited_s, waiting_since, bypassed, sent, charged, used, charged_at, used_fraction, sampled, rate
)
SELECT *
FROM unnest(
    $1::bigint[], $2::double precision[], $3::double precision[], $4::int[], $5::bigint[], $6::bigint[], $7::bigint[],
    $8::double precision[], $9::double precision[], $10::bigint[], $11::double precision[]
) AS noted (batch_id, waited_s, waiting_since, bypassed, sent, charged, used, charged_at, used_fraction, sampled, rate)
ORDER BY batch_id
ON CONFLICT (batch_id) DO UPDATE SET
    waited_s = excluded.waited_s, waiting_since = excluded.waiting_since, bypassed = excluded.bypassed,
    sent = excluded.sent, charged = excluded.charged, used = excluded.used, charged_at = excluded.charged_at,
    used_fraction = excluded.used_fraction, sampled = excluded.sampled, rate = excluded.rate;
