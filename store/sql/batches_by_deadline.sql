-- Purpose: active batches with a deadline that were chosen, the earliest first, with the names of what they belong to.
-- Arguments: $1 deadline_at and $2 batch_id behind which to go on, $3 limit, $4 qos, $5 app_id, $6 submitter_id
-- (null: any), $7 text.
-- Result: rows of batch_with_counts with app_name, submitter_name and account_name.
SELECT
    batch_with_counts.*, app.name AS app_name, submitter.name AS submitter_name, account.name AS account_name
FROM (
    SELECT batch_id
    FROM batch
    WHERE
        state = 'active'
        AND deadline_at IS NOT NULL
        AND (deadline_at, batch_id) > ($1::double precision, $2::bigint)
        AND ($4::text IS NULL OR qos = $4)
        AND ($5::int IS NULL OR app_id = $5)
        AND ($6::int IS NULL OR submitter_id = $6)
        AND strpos(lower(name), $7) > 0
    ORDER BY deadline_at, batch_id
    LIMIT $3
) AS first
JOIN batch_with_counts ON batch_with_counts.batch_id = first.batch_id
JOIN app ON app.app_id = batch_with_counts.app_id
JOIN submitter ON submitter.submitter_id = batch_with_counts.submitter_id
JOIN account ON account.account_id = batch_with_counts.account_id
ORDER BY batch_with_counts.deadline_at, batch_with_counts.batch_id;
