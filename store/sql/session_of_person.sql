-- Purpose: whose session is it?
-- Arguments: $1 session_hash, $2 now.
-- Result: the session with its person, who must be active; no row when it has ended.
SELECT
    s.session_hash, s.created_at AS session_created_at, s.seen_at, s.expires_at, s.address, s.agent, s.volunteer_id, p.*
FROM web_session AS s JOIN person AS p ON p.person_id = s.person_id
WHERE s.session_hash = $1 AND s.expires_at > $2 AND p.active;
