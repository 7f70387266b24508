-- Purpose: results that were taken as good without one of the outputs their jobs must have. Reads every instance, those of
--   the history too.
-- Arguments: $1 how many at most.
-- Result: thing, because; by instance.
WITH wanted AS (
    SELECT job_class.job_class_id, output.position - 1 AS number, output.file ->> 'name' AS name
    FROM job_class
    CROSS JOIN LATERAL jsonb_array_elements(job_class.outputs) WITH ORDINALITY AS output (file, position)
    WHERE NOT coalesce((output.file ->> 'optional')::boolean, false)
),
brought AS (
    SELECT instance_id, name FROM upload
    UNION ALL
    SELECT finished_instance.instance_id, output.file ->> 'name'
    FROM finished_instance
    CROSS JOIN LATERAL jsonb_array_elements(finished_instance.uploads) AS output (file)
),
taken AS (
    SELECT instance_id, job_class_id, state FROM instance WHERE state IN ('reported', 'inconclusive', 'valid')
    UNION ALL
    SELECT instance_id, job_class_id, state FROM finished_instance WHERE state IN ('reported', 'inconclusive', 'valid')
)
SELECT
    'instance ' || taken.instance_id AS thing, format('it is %s, and its output %s was not brought', taken.state, wanted.name) AS because
FROM taken
JOIN wanted USING (job_class_id)
WHERE NOT EXISTS (
    SELECT
    FROM brought
    WHERE brought.instance_id = taken.instance_id
        AND right(brought.name, length('_' || taken.instance_id || '_r' || wanted.number))
            = '_' || taken.instance_id || '_r' || wanted.number
)
ORDER BY taken.instance_id
LIMIT $1;
