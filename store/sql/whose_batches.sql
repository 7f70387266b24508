-- Purpose: whose some batches are, and of which app, by name.
-- Arguments: $1 batch_ids (array).
-- Result: batch_id, app, submitter, account, by id.
SELECT batch_id, app.name AS app, submitter.name AS submitter, account.name AS account
FROM batch
JOIN app USING (app_id)
JOIN submitter USING (submitter_id)
JOIN account ON account.account_id = batch.account_id
WHERE batch_id = ANY($1::bigint[])
ORDER BY batch_id;
