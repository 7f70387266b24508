-- Purpose: a submitter's standing; the row is locked until the transaction ends.
-- Arguments: $1 submitter_id.
-- Result: submitter_id, account_id, shares, logical_at; no row when there is none.
SELECT submitter_id, account_id, shares, logical_at FROM submitter WHERE submitter_id = $1 FOR NO KEY UPDATE;
