-- Purpose: change an app; its name stays, files are named after it.
-- Arguments: $1 app_id, $2 user_friendly_name, $3 beta, $4 deprecated, $5 adaptive_copies,
--   $6 one_per_host, $7 one_per_volunteer.
-- Result: app_id; no row when there is none.
UPDATE app SET
    user_friendly_name = $2, beta = $3, deprecated = $4, adaptive_copies = $5, one_per_host = $6, one_per_volunteer = $7
WHERE app_id = $1
RETURNING app_id;
