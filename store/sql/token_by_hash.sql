-- Purpose: whose token is it?
-- Arguments: $1 token_hash.
-- Result: the token and its person, who must be active; or none.
SELECT
    t.token_id, t.token_hash, t.name AS token_name, t.rights, t.created_at AS token_created_at, t.expires_at,
    t.last_used_at, t.revoked_at, p.*
FROM api_token AS t JOIN person AS p ON p.person_id = t.person_id
WHERE t.token_hash = $1 AND p.active;
