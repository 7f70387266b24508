-- Purpose: outputs of some instances of the history.
-- Arguments: $1 instance_id behind which to look, $2 how many instances.
-- Result: instance_id, name, nbytes, md5; by instance; name null for an instance without any.
SELECT
    instance.instance_id, output.file ->> 'name' AS name, (output.file ->> 'nbytes')::bigint AS nbytes,
    output.file ->> 'md5' AS md5
FROM (
    SELECT instance_id, uploads FROM finished_instance WHERE instance_id > $1 ORDER BY instance_id LIMIT $2
) AS instance
LEFT JOIN LATERAL jsonb_array_elements(instance.uploads) AS output (file) ON true
ORDER BY instance.instance_id, name;
