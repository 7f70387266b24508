-- Purpose: somebody who may sign in.
-- Arguments: $1 name, $2 role, $3 submitter_id, $4 password_hash, $5 password_salt, $6 scrypt_n, $7 scrypt_r,
--   $8 scrypt_p, $9 one_time_until, $10 created_at.
-- Result: the row; none when the name is taken.
INSERT INTO person (
    name, role, submitter_id, password_hash, password_salt, scrypt_n, scrypt_r, scrypt_p, one_time_until, created_at
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ON CONFLICT (name) DO NOTHING
RETURNING *;
