-- Purpose: lock those of some instances that are still unsent and nobody else is sending, with what deciding about them takes.
-- Arguments: $1 instance_ids.
-- Result: by id: the instance, its job, whether job and batch still want it, how the app spreads instances, how many results
--   must agree at present, the volunteers of sent instances with their places (nths), the hosts that had the job
--   (that have it in progress, where the app allows a host several), and how many instances of the job may still be of use.
WITH locked AS (
    SELECT instance_id, job_id, batch_id, job_class_id, shard
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
    app.one_per_host, app.one_per_volunteer, greatest(job_class.quorum, app.adaptive_copies, job.copies) AS agreeing,
    siblings.hosts, siblings.volunteers, siblings.nths, siblings.of_use
FROM locked
JOIN job ON job.job_id = locked.job_id
JOIN batch ON batch.batch_id = locked.batch_id
JOIN job_class ON job_class.job_class_id = locked.job_class_id
JOIN app ON app.app_id = batch.app_id
CROSS JOIN LATERAL (
    SELECT
        array_agg(sibling.host_id) FILTER (
            WHERE sibling.host_id IS NOT NULL AND (app.one_per_host OR sibling.state = 'in_progress')
        ) AS hosts,
        array_agg(sibling.volunteer_id) FILTER (WHERE sibling.volunteer_id IS NOT NULL) AS volunteers,
        array_agg(sibling.nth) FILTER (WHERE sibling.volunteer_id IS NOT NULL) AS nths,
        count(*) FILTER (
            WHERE sibling.state IN ('unsent', 'in_progress', 'reported', 'inconclusive', 'valid')
        ) AS of_use
    FROM instance AS sibling
    WHERE sibling.job_id = locked.job_id
) AS siblings
ORDER BY locked.instance_id;
