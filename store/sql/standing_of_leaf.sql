-- Purpose: how a submitter in an account stood at the last ordering, with the reference host of then and the account's grant.
-- Arguments: $1 submitter_id, $2 account_id.
-- Result: one row: standing and reference (JSON or null), granted_su, period_start_at, period_s, used_su, reserved_su (null
--   without a grant).
SELECT
    usage.standing, ordering.reference, account_grant.granted_su, account_grant.period_start_at, account_grant.period_s,
    account_grant.used_su, account_grant.reserved_su
FROM ordering
LEFT JOIN usage ON usage.submitter_id = $1 AND usage.account_id = $2
LEFT JOIN account_grant ON account_grant.account_id = $2;
