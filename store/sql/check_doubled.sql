-- Purpose: what is there twice: jobs and instances that are busy and in the history too, canonical instances of two jobs,
--   hosts that have a job in progress twice, which no setting of an app allows. Reads every job and instance, those of the
--   history too.
-- Arguments: $1 how many at most.
-- Result: thing, because.
WITH every_instance AS (
    SELECT instance_id FROM instance
    UNION ALL
    SELECT instance_id FROM finished_instance
),
every_job AS (
    SELECT job_id, canonical_instance_id FROM job
    UNION ALL
    SELECT job_id, canonical_instance_id FROM finished_job
)
SELECT thing, because
FROM (
    SELECT 'job ' || job_id AS thing, 'it is there ' || count(*) || ' times' AS because
    FROM every_job
    GROUP BY job_id
    HAVING count(*) > 1
    UNION ALL
    SELECT 'instance ' || instance_id, 'it is there ' || count(*) || ' times'
    FROM every_instance
    GROUP BY instance_id
    HAVING count(*) > 1
    UNION ALL
    SELECT 'instance ' || canonical_instance_id, count(*) || ' jobs are valid by it'
    FROM every_job
    WHERE canonical_instance_id IS NOT NULL
    GROUP BY canonical_instance_id
    HAVING count(DISTINCT job_id) > 1
    UNION ALL
    SELECT 'job ' || job_id, 'host ' || host_id || ' has it in progress ' || count(*) || ' times'
    FROM instance
    WHERE state = 'in_progress'
    GROUP BY job_id, host_id
    HAVING count(*) > 1
) AS doubled
ORDER BY thing
LIMIT $1;
