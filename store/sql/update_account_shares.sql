-- Purpose: change an account's shares.
-- Arguments: $1 name, $2 shares.
-- Result: the account; no row when there is none.
UPDATE account SET shares = $2 WHERE name = $1
RETURNING account_id, name, parent_id, shares, permissions;
