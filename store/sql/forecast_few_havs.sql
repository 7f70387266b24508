-- Purpose: whether few hosts have done anything with an app's versions.
-- Arguments: $1 app_version_ids, $2 how many rows are few.
-- Result: few.
SELECT NOT EXISTS (
    SELECT
    FROM host_app_version
    WHERE app_version_id = ANY($1::int[])
    OFFSET $2::bigint
) AS few;
