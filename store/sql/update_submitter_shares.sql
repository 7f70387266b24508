-- Purpose: change a submitter's shares.
-- Arguments: $1 name, $2 shares.
-- Result: the submitter; no row when there is none.
UPDATE submitter SET shares = $2 WHERE name = $1
RETURNING submitter_id, name, account_id, shares, logical_at, permissions;
