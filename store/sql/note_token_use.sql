-- Purpose: a token was used.
-- Arguments: $1 token_id, $2 last_used_at.
-- Result: none.
UPDATE api_token SET last_used_at = $2 WHERE token_id = $1;
