-- Purpose: active batches that were chosen, in their order, with the names of what they belong to.
-- Arguments: $1 order_tier, $2 order_key and $3 batch_id behind which to go on, $4 limit, $5 qos, $6 app_id,
-- $7 submitter_id (null: any), $8 text.
-- Result: rows of batch_with_counts with app_name, submitter_name and account_name.
SELECT
    batch_with_counts.*, app.name AS app_name, submitter.name AS submitter_name, account.name AS account_name
FROM (
    SELECT batch_id
    FROM batch
    WHERE
        state = 'active'
        AND (order_tier, order_key, batch_id) > ($1::int, $2::double precision, $3::bigint)
        AND ($5::text IS NULL OR qos = $5)
        AND ($6::int IS NULL OR app_id = $6)
        AND ($7::int IS NULL OR submitter_id = $7)
        AND strpos(lower(name), $8) > 0
    ORDER BY order_tier, order_key, batch_id
    LIMIT $4
) AS first
JOIN batch_with_counts ON batch_with_counts.batch_id = first.batch_id
JOIN app ON app.app_id = batch_with_counts.app_id
JOIN submitter ON submitter.submitter_id = batch_with_counts.submitter_id
JOIN account ON account.account_id = batch_with_counts.account_id
ORDER BY batch_with_counts.order_tier, batch_with_counts.order_key, batch_with_counts.batch_id;
