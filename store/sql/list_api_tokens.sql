-- Purpose: tokens of the API.
-- Arguments: $1 person_id or null for everybody's, $2 limit, $3 token_id after which to go on, 0 for the start.
-- Result: tokens by id.
SELECT *, name AS token_name, created_at AS token_created_at FROM api_token
WHERE ($1::int IS NULL OR person_id = $1) AND token_id > $3
ORDER BY token_id LIMIT $2;
