-- Purpose: the instances of a batch that were not cancelled. A batch's job ids are next to each other but for those of
--   batches submitted at the same time, so that a range of the index has them.
-- Arguments: $1 batch_id, $2 its first job_id, $3 its last one.
-- Result: the fields of domain/forecasting.py INSTANCE_FIELDS, none of them null.
SELECT
    job_id, coalesce(host_id, -1) AS host_id, coalesce(app_version_id, -1) AS app_version_id,
    CASE state
        WHEN 'unsent' THEN 0 WHEN 'in_progress' THEN 1 WHEN 'failed' THEN 3 WHEN 'timed_out' THEN 4
        WHEN 'invalid' THEN 5 WHEN 'aborted' THEN 6 ELSE 2
    END::smallint AS standing,
    CASE
        WHEN state = 'valid' THEN 1
        WHEN state IN ('failed', 'invalid') THEN 2
        WHEN state = 'timed_out' OR state = 'aborted' AND turnaround_sample IS NOT NULL THEN 3
        ELSE 0
    END::smallint AS counted,
    created_at, coalesce(sent_at, 'NaN') AS sent_at, coalesce(due_at, 'NaN') AS due_at,
    coalesce(timeout_at, 'NaN') AS timeout_at, coalesce(reported_at, 'NaN') AS reported_at
FROM instance
WHERE job_id BETWEEN $2::bigint AND $3::bigint AND batch_id = $1::bigint AND state <> 'cancelled'
