-- Purpose: somebody signs out.
-- Arguments: $1 session_hash.
-- Result: none.
DELETE FROM web_session WHERE session_hash = $1;
