-- Purpose: let a submitter submit in a further account, with these shares.
-- Arguments: $1 submitter_id, $2 account_id, $3 shares.
-- Result: none.
INSERT INTO membership (submitter_id, account_id, shares) VALUES ($1, $2, $3)
ON CONFLICT (submitter_id, account_id) DO UPDATE SET shares = excluded.shares;
