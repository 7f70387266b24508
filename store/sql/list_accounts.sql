-- Purpose: every account.
-- Arguments: none.
-- Result: accounts by id.
SELECT account_id, name, parent_id, shares, permissions FROM account ORDER BY account_id;
