-- Purpose: one submitter.
-- Arguments: $1 name.
-- Result: the submitter; no row when there is none.
SELECT submitter_id, name, account_id, shares, logical_at, permissions FROM submitter WHERE name = $1;
