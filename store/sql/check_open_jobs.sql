-- Purpose: open jobs that would stay open for ever: nothing of them waits or is under way and no mark asks for a look, or
--   their batch is over; and jobs with reports enough to judge that nobody was asked to judge. Reads every job and instance.
-- Arguments: $1 how many at most.
-- Result: thing, because; by job.
WITH stuck AS (
    SELECT job.job_id, 'it is open, and nothing of it waits, is under way or is to be looked at' AS because
    FROM job
    WHERE job.state = 'open'
        AND NOT EXISTS (SELECT FROM job_todo WHERE job_todo.job_id = job.job_id)
        AND NOT EXISTS (
            SELECT FROM instance WHERE instance.job_id = job.job_id AND instance.state IN ('unsent', 'in_progress')
        )
    UNION ALL
    SELECT job.job_id, format('it is open, and its batch %s is %s: abort the batch once more', batch.batch_id, batch.state)
    FROM job
    JOIN batch USING (batch_id)
    WHERE job.state = 'open' AND batch.state <> 'active'
    UNION ALL
    SELECT instance.job_id, format('its instance %s is reported, and is not to be looked at', instance.instance_id)
    FROM instance
    JOIN job USING (job_id)
    JOIN job_class ON job_class.job_class_id = job.job_class_id
    WHERE instance.state = 'reported'
        AND NOT EXISTS (SELECT FROM job_todo WHERE job_todo.job_id = instance.job_id)
        AND (
            job.state <> 'open'
            OR (
                SELECT count(*)
                FROM instance AS usable
                WHERE usable.job_id = job.job_id AND usable.state IN ('reported', 'inconclusive', 'valid')
            ) >= least(job_class.max_instances + job.more_instances, greatest(job_class.quorum, job.copies))
        )
)
SELECT 'job ' || job_id AS thing, because
FROM stuck
ORDER BY job_id
LIMIT $1;
