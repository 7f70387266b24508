-- Purpose: a token of the API.
-- Arguments: $1 token_hash, $2 name, $3 person_id, $4 rights, $5 created_at, $6 expires_at.
-- Result: the row.
INSERT INTO api_token (token_hash, name, person_id, rights, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6)
RETURNING *, name AS token_name, created_at AS token_created_at;
