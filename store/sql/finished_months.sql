-- Purpose: what there is of each month of the history, and on which a purge was ever made.
-- Arguments: none.
-- Result: month, jobs, instances, files, file_bytes, table_bytes and purged_at, by month.
SELECT
    month, jobs, instances, files, file_bytes, purged_at,
    (
        coalesce(pg_total_relation_size(to_regclass('finished_job_' || replace(month, '-', '_'))), 0)
        + coalesce(pg_total_relation_size(to_regclass('finished_instance_' || replace(month, '-', '_'))), 0)
    ) AS table_bytes
FROM finished_month
ORDER BY month;
