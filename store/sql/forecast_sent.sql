-- Purpose: a sample of the instances of an app's other batches by when they were sent, whatever became of them since: from
--   a sample of pages, the same share of the instances at hand and of the history.
-- Arguments: $1 app_version_ids, $2 batch_id left out, $3 since when they were sent, $4 how many rows at most, $5 per cent
--   of the pages, $6 the sample's seed.
-- Result: the fields of domain/forecasting.py SENT_FIELDS, none of them null.
SELECT
    sent.host_id, sent.app_version_id,
    CASE sent.state
        WHEN 'in_progress' THEN 1 WHEN 'failed' THEN 3 WHEN 'timed_out' THEN 4
        WHEN 'invalid' THEN 5 WHEN 'aborted' THEN 6 ELSE 2
    END::smallint AS standing,
    sent.sent_at, coalesce(sent.reported_at, 'NaN') AS reported_at, job_class.fpops_est_flop, sent.found
FROM (
    SELECT *, count(*) OVER () AS found
    FROM (
        SELECT host_id, app_version_id, state, sent_at, reported_at, job_class_id, instance_id
        FROM instance TABLESAMPLE SYSTEM ($5::real) REPEATABLE ($6::double precision)
        WHERE app_version_id = ANY($1::int[]) AND batch_id <> $2::bigint AND sent_at >= $3::double precision
        UNION ALL
        SELECT host_id, app_version_id, state, sent_at, reported_at, job_class_id, instance_id
        FROM finished_instance TABLESAMPLE SYSTEM ($5::real) REPEATABLE ($6::double precision)
        WHERE app_version_id = ANY($1::int[]) AND batch_id <> $2::bigint AND sent_at >= $3::double precision
            AND batch_ended_at >= $3::double precision  -- nothing is sent after its batch has ended
    ) AS either
    ORDER BY hashint8(instance_id), instance_id
    LIMIT $4::bigint
) AS sent
JOIN job_class ON job_class.job_class_id = sent.job_class_id
