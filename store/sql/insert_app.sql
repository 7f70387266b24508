-- Purpose: a new app.
-- Arguments: $1 name, $2 user_friendly_name, $3 beta, $4 deprecated, $5 adaptive_copies,
--   $6 one_per_host, $7 one_per_volunteer.
-- Result: the app; no row when the name is taken.
INSERT INTO app (name, user_friendly_name, beta, deprecated, adaptive_copies, one_per_host, one_per_volunteer)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (name) DO NOTHING
RETURNING app_id, name, user_friendly_name, beta, deprecated, adaptive_copies, one_per_host, one_per_volunteer;
