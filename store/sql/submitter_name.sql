-- Purpose: a submitter's name.
-- Arguments: $1 submitter_id.
-- Result: the name; no row when there is none.
SELECT name FROM submitter WHERE submitter_id = $1;
