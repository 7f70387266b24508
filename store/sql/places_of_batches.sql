-- Purpose: where batches stand in the order of all active ones.
-- Arguments: $1 batch_ids.
-- Result: batch_id, place (1 = first), active (how many are ordered), by batch_id; no row for a batch that is over.
SELECT ordered.batch_id, ordered.place, ordered.active
FROM (
    SELECT
        batch_id,
        row_number() OVER (ORDER BY order_tier, order_key, batch_id) AS place,
        count(*) OVER () AS active
    FROM batch
    WHERE state = 'active'
) AS ordered
WHERE ordered.batch_id = ANY($1::bigint[])
ORDER BY ordered.batch_id;
