-- Purpose: a session was used.
-- Arguments: $1 session_hash, $2 seen_at, $3 expires_at.
-- Result: none.
UPDATE web_session SET seen_at = $2, expires_at = $3 WHERE session_hash = $1;
