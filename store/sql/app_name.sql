-- Purpose: an app's name.
-- Arguments: $1 app_id.
-- Result: the name; no row when there is none.
SELECT name FROM app WHERE app_id = $1;
