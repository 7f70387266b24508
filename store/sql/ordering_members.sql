-- Purpose: every submitter in each of its accounts, its own account first.
-- Arguments: none.
-- Result: submitter_id, name, account_id, shares, by submitter_id.
SELECT submitter_id, name, account_id, shares
FROM (
    SELECT submitter_id, name, account_id, shares, 0 AS place FROM submitter
    UNION ALL
    SELECT membership.submitter_id, submitter.name, membership.account_id, membership.shares, 1
    FROM membership
    JOIN submitter USING (submitter_id)
) AS member
ORDER BY submitter_id, place, account_id;
