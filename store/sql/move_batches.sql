-- Purpose: give batches their places in the order, and what holds them. Their rows are locked.
-- Arguments: $1 batch_ids, $2 order_tier, $3 order_key, $4 hold or nulls, $5 sent_most or nulls, $6 unpaid,
--   $7 job_pe (arrays).
-- Result: none.
UPDATE batch SET
    order_tier = moved.order_tier, order_key = moved.order_key, hold = moved.hold, sent_most = moved.sent_most,
    unpaid = moved.unpaid, job_pe = moved.job_pe
FROM unnest(
    $1::bigint[], $2::int[], $3::double precision[], $4::text[], $5::bigint[], $6::boolean[], $7::double precision[]
) AS moved (batch_id, order_tier, order_key, hold, sent_most, unpaid, job_pe)
WHERE batch.batch_id = moved.batch_id;
