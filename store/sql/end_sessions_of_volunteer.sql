-- Purpose: a volunteer is signed out everywhere, but for one session.
-- Arguments: $1 volunteer_id, $2 session_hash that stays, or an empty one.
-- Result: session_hash of those ended.
DELETE FROM web_session WHERE volunteer_id = $1 AND session_hash <> $2
RETURNING session_hash;
