-- Purpose: what a submitter may do.
-- Arguments: $1 name, $2 permissions.
-- Result: submitter_id; no row when there is none.
UPDATE submitter SET permissions = $2 WHERE name = $1
RETURNING submitter_id;
