-- Purpose: the first urgent instances of several batches.
-- Arguments: $1 batch_ids, $2 how many of each.
-- Result: candidates in the order of the batches, retries descending and ascending id within one.
SELECT
    waiting.instance_id, waiting.job_id, waiting.batch_id, waiting.job_class_id, waiting.retries, job.hr_class,
    siblings.returned AS sibling_returned, siblings.hosts AS sibling_hosts, siblings.volunteers AS sibling_volunteers
FROM unnest($1::bigint[]) WITH ORDINALITY AS wanted (batch_id, position)
CROSS JOIN LATERAL (
    SELECT instance_id, job_id, batch_id, job_class_id, retries
    FROM instance
    WHERE instance.batch_id = wanted.batch_id AND instance.state = 'unsent' AND instance.urgent
    ORDER BY instance.retries DESC, instance.instance_id
    LIMIT $2
) AS waiting
JOIN job ON job.job_id = waiting.job_id
CROSS JOIN LATERAL (
    SELECT
        coalesce(array_agg(sibling.host_id ORDER BY sibling.host_id), '{}') AS hosts,
        coalesce(array_agg(sibling.volunteer_id ORDER BY sibling.volunteer_id), '{}') AS volunteers,
        coalesce(bool_or(sibling.state IN ('reported', 'inconclusive')), false) AS returned
    FROM instance AS sibling
    WHERE sibling.job_id = waiting.job_id AND sibling.host_id IS NOT NULL
) AS siblings
ORDER BY wanted.position, waiting.retries DESC, waiting.instance_id;
