-- Purpose: what who submits in an account or below it may do.
-- Arguments: $1 name, $2 permissions.
-- Result: account_id; no row when there is none.
UPDATE account SET permissions = $2 WHERE name = $1
RETURNING account_id;
