-- Purpose: every app version.
-- Arguments: none.
-- Result: app versions by id.
SELECT app_version_id, app_id, platform, version_num, plan_class, api_version, deprecated, created_at
FROM app_version
ORDER BY app_version_id;
