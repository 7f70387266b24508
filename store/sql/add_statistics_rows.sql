-- Purpose: empty rows of statistics, for hosts' app versions seen for the first time.
-- Arguments: $1 host_ids, $2 app_version_ids (arrays, keys distinct).
-- Result: none.
INSERT INTO host_app_version (host_id, app_version_id)
SELECT * FROM unnest($1::int[], $2::int[]) AS new (host_id, app_version_id) ORDER BY new.host_id, new.app_version_id
ON CONFLICT (host_id, app_version_id) DO NOTHING;
