-- Purpose: every submitter in each of its accounts, its own account first.
-- Arguments: none.
-- Result: submitter_id, name, account_id, shares, permissions, by submitter_id.
SELECT submitter_id, name, account_id, shares, permissions
FROM (
    SELECT submitter_id, name, account_id, shares, permissions, 0 AS place FROM submitter
    UNION ALL
    SELECT membership.submitter_id, submitter.name, membership.account_id, membership.shares, submitter.permissions, 1
    FROM membership
    JOIN submitter USING (submitter_id)
) AS member
ORDER BY submitter_id, place, account_id;
