-- Purpose: a new submitter.
-- Arguments: $1 name, $2 account_id, $3 shares, $4 created_at.
-- Result: the submitter.
INSERT INTO submitter (name, account_id, shares, logical_at, created_at) VALUES ($1, $2, $3, 0, $4)
RETURNING submitter_id, name, account_id, shares, logical_at, permissions;
