-- Purpose: a new app version.
-- Arguments: $1 app_id, $2 platform, $3 version_num, $4 plan_class, $5 api_version, $6 deprecated, $7 created_at.
-- Result: app_version_id; no row when it exists already.
INSERT INTO app_version (app_id, platform, version_num, plan_class, api_version, deprecated, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (app_id, platform, version_num, plan_class) DO NOTHING
RETURNING app_version_id;
