-- Purpose: somebody has signed in.
-- Arguments: $1 session_hash, $2 person_id, $3 volunteer_id (one of them), $4 created_at, $5 seen_at, $6 expires_at,
--   $7 address, $8 agent.
-- Result: none.
INSERT INTO web_session (session_hash, person_id, volunteer_id, created_at, seen_at, expires_at, address, agent)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8);
