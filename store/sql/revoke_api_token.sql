-- Purpose: a token serves no longer.
-- Arguments: $1 token_id, $2 revoked_at.
-- Result: the row; none when there is no such token.
UPDATE api_token SET revoked_at = coalesce(revoked_at, $2) WHERE token_id = $1
RETURNING *, name AS token_name, created_at AS token_created_at;
