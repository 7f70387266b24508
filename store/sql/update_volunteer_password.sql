-- Purpose: a volunteer's new password; the account key stays, so that attached clients do.
-- Arguments: $1 volunteer_id, $2 password_salt, $3 password_hash.
-- Result: volunteer_id; no row when there is none.
UPDATE volunteer SET password_salt = $2, password_hash = $3
WHERE volunteer_id = $1
RETURNING volunteer_id;
