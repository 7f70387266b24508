-- Purpose: every submitter.
-- Arguments: none.
-- Result: submitters by id.
SELECT submitter_id, name, account_id, shares, logical_at, permissions FROM submitter ORDER BY submitter_id;
