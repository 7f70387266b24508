-- Purpose: about how many rows of statistics there are for each app version, from one page in a hundred.
-- Arguments: none.
-- Result: app_version_id, rows.
SELECT app_version_id, count(*) * 100 AS rows
FROM host_app_version TABLESAMPLE SYSTEM (1)
GROUP BY app_version_id
ORDER BY app_version_id;
