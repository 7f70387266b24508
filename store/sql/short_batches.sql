-- Purpose: active batches that no host that called lately can finish, because a volunteer or a host gets one instance of a job
--   at most: fewer of them than results that must agree, or all of them have had a job that waits.
-- Arguments: $1 batch_ids, $2 instant since which a call counts, $3 hosts of an app that are looked at (an app with so many is
--   left out), $4 urgent instances of a batch that are looked at.
-- Result: by batch_id: batch_id, one_per ('volunteer' or 'host'), agreeing, jobs, hosts, volunteers.
WITH wanted AS MATERIALIZED (
    SELECT
        batch.batch_id, batch.app_id, app.adaptive_copies, app.one_per_volunteer, app.one_per_host, class.agreeing
    FROM batch
    JOIN app ON app.app_id = batch.app_id
    CROSS JOIN LATERAL (
        SELECT greatest(max(job_class.quorum), app.adaptive_copies) AS agreeing
        FROM job_class
        WHERE job_class.batch_id = batch.batch_id
    ) AS class
    WHERE batch.batch_id = ANY($1::bigint[])
        AND batch.state = 'active'
        AND (
            class.agreeing > 1
            OR EXISTS (  -- of all others nothing can be short: no host is read for them
                SELECT
                FROM instance
                WHERE instance.batch_id = batch.batch_id AND instance.state = 'unsent' AND instance.urgent
            )
        )
),
callers AS MATERIALIZED (
    SELECT of_app.app_id, host.host_id, host.volunteer_id
    FROM (SELECT DISTINCT app_id FROM wanted) AS of_app
    CROSS JOIN LATERAL (
        SELECT host.host_id, host.volunteer_id
        FROM host
        WHERE host.last_rpc_at >= $2
            AND host.platforms && ARRAY(
                SELECT version.platform
                FROM app_version AS version
                WHERE version.app_id = of_app.app_id AND NOT version.deprecated
            )
        LIMIT $3
    ) AS host
),
counted AS (
    SELECT app_id, count(*)::int AS hosts, count(DISTINCT volunteer_id)::int AS volunteers
    FROM callers
    GROUP BY app_id
    HAVING count(*) < $3
),
judged AS (
    SELECT
        wanted.batch_id, counted.hosts, counted.volunteers, wanted.agreeing,
        CASE
            WHEN wanted.one_per_volunteer = 'always' OR (wanted.one_per_volunteer = 'quorum' AND wanted.agreeing > 1)
            THEN 'volunteer'
            WHEN wanted.one_per_host THEN 'host'
        END AS one_per,
        (
            SELECT count(DISTINCT waiting.job_id)::int
            FROM (
                SELECT instance.job_id
                FROM instance
                WHERE instance.batch_id = wanted.batch_id AND instance.state = 'unsent' AND instance.urgent
                ORDER BY instance.retries DESC, instance.instance_id
                LIMIT $4
            ) AS waiting
            JOIN job ON job.job_id = waiting.job_id
            JOIN job_class ON job_class.job_class_id = job.job_class_id
            CROSS JOIN LATERAL (
                SELECT
                    count(*) FILTER (
                        WHERE sibling.state IN ('in_progress', 'reported', 'inconclusive', 'valid')
                    ) AS of_use,
                    array_agg(sibling.host_id) FILTER (WHERE sibling.host_id IS NOT NULL) AS hosts,
                    array_agg(sibling.volunteer_id) FILTER (WHERE sibling.host_id IS NOT NULL) AS volunteers
                FROM instance AS sibling
                WHERE sibling.job_id = waiting.job_id
            ) AS siblings
            CROSS JOIN LATERAL (
                SELECT greatest(job_class.quorum, wanted.adaptive_copies, job.copies) AS agreeing
            ) AS of_job
            WHERE siblings.of_use < of_job.agreeing
                AND NOT EXISTS (
                    SELECT
                    FROM callers
                    WHERE callers.app_id = wanted.app_id
                        AND CASE
                            WHEN wanted.one_per_volunteer = 'always'
                                OR (wanted.one_per_volunteer = 'quorum' AND of_job.agreeing > 1)
                            THEN callers.volunteer_id <> ALL(coalesce(siblings.volunteers, '{}'))
                            WHEN wanted.one_per_host
                            THEN callers.host_id <> ALL(coalesce(siblings.hosts, '{}'))
                            ELSE true
                        END
                )
        ) AS jobs
    FROM wanted
    JOIN counted ON counted.app_id = wanted.app_id
)
SELECT batch_id, one_per, agreeing, jobs, hosts, volunteers
FROM judged
WHERE one_per IS NOT NULL AND (jobs > 0 OR agreeing > CASE one_per WHEN 'volunteer' THEN volunteers ELSE hosts END)
ORDER BY batch_id;
