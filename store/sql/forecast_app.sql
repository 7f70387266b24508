-- Purpose: an app's versions, and how large the tables are that samples are drawn from.
-- Arguments: $1 app_id, $2 since when history matters.
-- Result: app_id, app_version_ids; in pages: hav_pages, host_pages, sent_pages (instances, and the months of the history).
--   No row unless there is such an app.
SELECT
    app.app_id, version.ids AS app_version_ids,
    pg_relation_size('host_app_version') / current_setting('block_size')::bigint AS hav_pages,
    pg_relation_size('host') / current_setting('block_size')::bigint AS host_pages,
    (
        pg_relation_size('instance') + (
            SELECT coalesce(sum(pg_relation_size(to_regclass('finished_instance_' || replace(month, '-', '_')))), 0)
            FROM finished_month
            WHERE ends_at > $2::double precision AND to_regclass('finished_instance_' || replace(month, '-', '_')) IS NOT NULL
        )
    )::bigint / current_setting('block_size')::bigint AS sent_pages
FROM app
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(app_version_id ORDER BY app_version_id), '{}') AS ids
    FROM app_version
    WHERE app_version.app_id = app.app_id
) AS version
WHERE app.app_id = $1;
