-- Purpose: what is to do: the counters of active batches together, by app and quality of service.
-- Arguments: none.
-- Result: one row per app and qos with active batches, by their names.
SELECT
    app.name AS app_name, batch.qos, count(*) AS batches, count(batch.hold) AS held,
    sum(batch.jobs_total)::bigint AS jobs_total, sum(total.jobs_validated)::bigint AS jobs_validated,
    sum(total.jobs_failed)::bigint AS jobs_failed, sum(total.unsent)::bigint AS unsent,
    sum(total.in_progress)::bigint AS in_progress, sum(total.sent)::bigint AS sent,
    sum(total.deadlines_missed)::bigint AS deadlines_missed
FROM batch
JOIN app ON app.app_id = batch.app_id
CROSS JOIN LATERAL (
    SELECT
        coalesce(sum(batch_count.jobs_validated), 0) AS jobs_validated,
        coalesce(sum(batch_count.jobs_failed), 0) AS jobs_failed,
        coalesce(sum(batch_count.unsent), 0) AS unsent,
        coalesce(sum(batch_count.in_progress), 0) AS in_progress,
        coalesce(sum(batch_count.sent), 0) AS sent,
        coalesce(sum(batch_count.deadlines_missed), 0) AS deadlines_missed
    FROM batch_count
    WHERE batch_count.batch_id = batch.batch_id
) AS total
WHERE batch.state = 'active'
GROUP BY app.name, batch.qos
ORDER BY app.name, batch.qos;
