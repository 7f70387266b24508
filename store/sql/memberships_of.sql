-- Purpose: the further accounts of a submitter.
-- Arguments: $1 submitter_id.
-- Result: account_id, shares, by account_id.
SELECT account_id, shares FROM membership WHERE submitter_id = $1 ORDER BY account_id;
