-- Purpose: a new volunteer.
-- Arguments: $1 email in lower case, $2 name, $3 authenticator_nonce, $4 authenticator_hash, $5 password_salt,
--   $6 password_hash, $7 cross_project_id, $8 beta, $9 created_at.
-- Result: volunteer_id; no row when the e-mail is known.
INSERT INTO volunteer (
    email, name, authenticator_nonce, authenticator_hash, password_salt, password_hash, cross_project_id, beta, created_at
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (email) DO NOTHING
RETURNING volunteer_id;
