-- Purpose: one app.
-- Arguments: $1 name.
-- Result: the app; no row when there is none.
SELECT app_id, name, user_friendly_name, beta, deprecated, adaptive_copies, one_per_host, one_per_volunteer
FROM app
WHERE name = $1;
