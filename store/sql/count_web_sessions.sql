-- Purpose: how many people are signed in.
-- Arguments: $1 now.
-- Result: one row: sessions of the project's people, and of volunteers.
SELECT count(person_id) AS people, count(volunteer_id) AS volunteers
FROM web_session
WHERE expires_at > $1;
