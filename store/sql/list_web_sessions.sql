-- Purpose: where is a person signed in?
-- Arguments: $1 person_id, $2 now, $3 limit.
-- Result: the person's sessions, the last used first.
SELECT *, created_at AS session_created_at FROM web_session
WHERE person_id = $1 AND expires_at > $2
ORDER BY seen_at DESC LIMIT $3;
