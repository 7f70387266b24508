-- Purpose: how many active batches there are of a submitter, an account, an app and a queue.
-- Arguments: $1 submitter_id, $2 account_id, $3 app_id, $4 queue.
-- Result: one row: submitter, account, app, queue.
SELECT
    count(*) FILTER (WHERE submitter_id = $1) AS submitter,
    count(*) FILTER (WHERE account_id = $2) AS account,
    count(*) FILTER (WHERE app_id = $3) AS app,
    count(*) FILTER (WHERE queue = $4) AS queue
FROM batch
WHERE state = 'active';
