-- Purpose: how a submitter in an account stood at the last ordering, with the reference host of then and the grant that
--   the account spends: its own, or that of the next account above it that has one.
-- Arguments: $1 submitter_id, $2 account_id.
-- Result: one row: standing and reference (JSON or null), account_id (that of the grant), granted_su, period_start_at,
--   period_s, used_su, reserved_su (null without a grant).
WITH RECURSIVE above AS (
    SELECT account_id, parent_id, 0 AS steps FROM account WHERE account_id = $2
    UNION ALL
    SELECT account.account_id, account.parent_id, above.steps + 1
    FROM above
    JOIN account ON account.account_id = above.parent_id
    WHERE above.steps < 1000
)

SELECT
    usage.standing, ordering.reference, payer.account_id, payer.granted_su, payer.period_start_at, payer.period_s,
    payer.used_su, payer.reserved_su
FROM ordering
LEFT JOIN usage ON usage.submitter_id = $1 AND usage.account_id = $2
LEFT JOIN (
    SELECT account_grant.*
    FROM above
    JOIN account_grant ON account_grant.account_id = above.account_id
    ORDER BY above.steps
    LIMIT 1
) AS payer ON true;
