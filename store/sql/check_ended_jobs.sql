-- Purpose: jobs that are over, and do not stand as their instances say: no valid canonical instance, a valid one beside
--   another verdict, or instances that still wait to be sent. Reads every job and instance, those of the history too.
-- Arguments: $1 how many at most.
-- Result: thing, because; by job.
WITH every_instance AS (
    SELECT instance_id, job_id, state FROM instance
    UNION ALL
    SELECT instance_id, job_id, state FROM finished_instance
),
ended AS (
    SELECT job_id, state, canonical_instance_id FROM job WHERE state <> 'open'
    UNION ALL
    SELECT job_id, state, canonical_instance_id FROM finished_job
),
compared AS (
    SELECT
        ended.job_id, ended.state, ended.canonical_instance_id,
        count(*) FILTER (WHERE every_instance.state = 'valid') AS valid,
        count(*) FILTER (WHERE every_instance.state = 'unsent') AS unsent,
        coalesce(bool_or(every_instance.state = 'valid' AND every_instance.instance_id = ended.canonical_instance_id), false)
            AS has_canonical
    FROM ended
    LEFT JOIN every_instance USING (job_id)
    GROUP BY ended.job_id, ended.state, ended.canonical_instance_id
)
SELECT
    'job ' || job_id AS thing,
    CASE
        WHEN state = 'valid' AND NOT has_canonical
            THEN format('it is valid by instance %s, which is no valid instance of it', canonical_instance_id)
        WHEN state <> 'valid' AND valid > 0 THEN format('it is %s and has %s valid instances', state, valid)
        ELSE format('it is %s and %s instances of it wait to be sent', state, unsent)
    END AS because
FROM compared
WHERE (state = 'valid' AND NOT has_canonical) OR (state <> 'valid' AND valid > 0) OR unsent > 0
ORDER BY job_id
LIMIT $1;
