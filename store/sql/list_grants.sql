-- Purpose: the grants of accounts.
-- Arguments: none.
-- Result: rows of account_grant by account_id.
SELECT account_id, granted_su, period_start_at, period_s, used_su, reserved_su FROM account_grant ORDER BY account_id;
