-- Purpose: an account's name.
-- Arguments: $1 account_id.
-- Result: the name; no row when there is none.
SELECT name FROM account WHERE account_id = $1;
