-- Purpose: let an account's work be charged nobody's service units.
-- Arguments: $1 account_id.
-- Result: none.
DELETE FROM account_grant WHERE account_id = $1;
