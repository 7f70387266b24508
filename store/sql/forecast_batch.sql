-- Purpose: an active batch's terms, and how large the tables are that samples are drawn from.
-- Arguments: $1 batch_id, $2 since when history matters.
-- Result: app_id, qos, created_at, delay_bound_s, held (by a limit), app_version_ids; in pages: hav_pages, host_pages, sent_pages
--   (instances, and the months of the history). No row unless such a batch is active.
SELECT
    batch.app_id, batch.qos, batch.created_at, class.delay_bound_s, batch.hold IS NOT NULL AS held, version.ids AS app_version_ids,
    pg_relation_size('host_app_version') / current_setting('block_size')::bigint AS hav_pages,
    pg_relation_size('host') / current_setting('block_size')::bigint AS host_pages,
    (
        pg_relation_size('instance') + (
            SELECT coalesce(sum(pg_relation_size(to_regclass('finished_instance_' || replace(month, '-', '_')))), 0)
            FROM finished_month
            WHERE ends_at > $2::double precision AND to_regclass('finished_instance_' || replace(month, '-', '_')) IS NOT NULL
        )
    )::bigint / current_setting('block_size')::bigint AS sent_pages
FROM batch
CROSS JOIN LATERAL (
    SELECT max(job_class.delay_bound_s) AS delay_bound_s
    FROM job_class
    WHERE job_class.batch_id = batch.batch_id
) AS class
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(app_version_id ORDER BY app_version_id), '{}') AS ids
    FROM app_version
    WHERE app_version.app_id = batch.app_id
) AS version
WHERE batch.batch_id = $1 AND batch.ended_at IS NULL;  -- which an active batch's is: found by its id alone
