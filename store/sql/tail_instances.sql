-- Purpose: the first fresh instances of several batches over all shards.
-- Arguments: $1 batch_ids, $2 how many of each.
-- Result: candidates in the order of the batches, by shard and ascending id within one; siblings only where a job has
--   several copies.
SELECT
    waiting.instance_id, waiting.job_id, waiting.batch_id, waiting.job_class_id, waiting.retries, job.hr_class,
    false AS sibling_returned, siblings.hosts AS sibling_hosts, siblings.volunteers AS sibling_volunteers
FROM unnest($1::bigint[]) WITH ORDINALITY AS wanted (batch_id, position)
CROSS JOIN LATERAL (
    SELECT instance_id, job_id, batch_id, job_class_id, retries, shard
    FROM instance
    WHERE instance.batch_id = wanted.batch_id AND instance.state = 'unsent' AND NOT instance.urgent
    ORDER BY instance.shard, instance.instance_id
    LIMIT $2
) AS waiting
JOIN job ON job.job_id = waiting.job_id
JOIN job_class ON job_class.job_class_id = waiting.job_class_id
CROSS JOIN LATERAL (
    SELECT
        coalesce(array_agg(sibling.host_id ORDER BY sibling.host_id), '{}') AS hosts,
        coalesce(array_agg(sibling.volunteer_id ORDER BY sibling.volunteer_id), '{}') AS volunteers
    FROM instance AS sibling
    WHERE sibling.job_id = waiting.job_id AND sibling.host_id IS NOT NULL
        AND (job_class.quorum > 1 OR job.copies > 1)
) AS siblings
ORDER BY wanted.position, waiting.shard, waiting.instance_id;
