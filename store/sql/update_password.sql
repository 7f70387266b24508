-- Purpose: a new password.
-- Arguments: $1 person_id, $2 password_hash, $3 password_salt, $4 scrypt_n, $5 scrypt_r, $6 scrypt_p,
--   $7 one_time_until.
-- Result: person_id; none when there is no such person.
UPDATE person SET
    password_hash = $2, password_salt = $3, scrypt_n = $4, scrypt_r = $5, scrypt_p = $6, one_time_until = $7
WHERE person_id = $1
RETURNING person_id;
