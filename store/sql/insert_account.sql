-- Purpose: a new account, under a parent or none.
-- Arguments: $1 name, $2 parent_id or null, $3 shares.
-- Result: the account.
INSERT INTO account (name, parent_id, shares) VALUES ($1, $2, $3)
RETURNING account_id, name, parent_id, shares, permissions;
