-- Purpose: one account.
-- Arguments: $1 name.
-- Result: the account; no row when there is none.
SELECT account_id, name, parent_id, shares, permissions FROM account WHERE name = $1;
