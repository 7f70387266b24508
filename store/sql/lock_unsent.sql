-- Purpose: lock those of some instances that are still unsent and nobody else is sending, with what deciding about them takes.
-- Arguments: $1 instance_ids.
-- Result: by id: the instance, its job, whether job and batch still want it, the hosts and volunteers that had the job, and
--   how many instances of the job may still be of use.
WITH locked AS (
    SELECT instance_id, job_id, batch_id, shard
    FROM instance
    WHERE instance_id = ANY($1::bigint[]) AND state = 'unsent'
    ORDER BY instance_id
    FOR UPDATE SKIP LOCKED
)
SELECT
    locked.instance_id, locked.job_id, locked.batch_id, locked.shard,
    job.state = 'open' AND batch.state = 'active' AS wanted,
    job.hr_class, job.copies,
    CASE WHEN job.template_id IS NULL THEN job.command_line ELSE (
        SELECT replace(template.command_line, '{i}', job.number::text)
        FROM job_template AS template WHERE template.template_id = job.template_id
    ) END AS command_line,
    CASE WHEN job.template_id IS NULL THEN job.inputs ELSE (
        SELECT template.inputs FROM job_template AS template WHERE template.template_id = job.template_id
    ) END AS inputs,
    siblings.hosts, siblings.volunteers, siblings.of_use
FROM locked
JOIN job ON job.job_id = locked.job_id
JOIN batch ON batch.batch_id = locked.batch_id
CROSS JOIN LATERAL (
    SELECT
        array_remove(array_agg(sibling.host_id), NULL) AS hosts,
        array_remove(array_agg(sibling.volunteer_id), NULL) AS volunteers,
        count(*) FILTER (
            WHERE sibling.state IN ('unsent', 'in_progress', 'reported', 'inconclusive', 'valid')
        ) AS of_use
    FROM instance AS sibling
    WHERE sibling.job_id = locked.job_id
) AS siblings
ORDER BY locked.instance_id;
