-- Purpose: what is known of hosts' app versions.
-- Arguments: $1 host_ids.
-- Result: rows of host_app_version by host and app version.
SELECT *
FROM host_app_version
WHERE host_id = ANY($1::int[])
ORDER BY host_id, app_version_id;
