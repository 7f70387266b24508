-- Purpose: give an account service units per period, instead of what it had; what it used stays used.
-- Arguments: $1 account_id, $2 granted_su, $3 period_start_at, $4 period_s.
-- Result: none.
INSERT INTO account_grant (account_id, granted_su, period_start_at, period_s) VALUES ($1, $2, $3, $4)
ON CONFLICT (account_id) DO UPDATE SET
    granted_su = excluded.granted_su, period_start_at = excluded.period_start_at, period_s = excluded.period_s;
