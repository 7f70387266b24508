-- Purpose: how good the forecasts of each app are.
-- Arguments: none.
-- Result: rows of app_forecast by app_id.
SELECT * FROM app_forecast ORDER BY app_id;
