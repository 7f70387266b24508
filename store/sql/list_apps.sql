-- Purpose: every app.
-- Arguments: none.
-- Result: apps by id.
SELECT app_id, name, user_friendly_name, beta, deprecated, adaptive_copies, one_per_host, one_per_volunteer
FROM app
ORDER BY app_id;
