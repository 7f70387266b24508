-- Purpose: the uploaded outputs of instances of a month of the history.
-- Arguments: $1 month, $2 instance_id behind which to look, $3 how many instances.
-- Result: instance_id and name of each output, ascending; name null for an instance without any.
SELECT instance.instance_id, output.file ->> 'name' AS name
FROM (
    SELECT instance_id, uploads
    FROM finished_instance
    WHERE batch_ended_at >= (SELECT starts_at FROM finished_month WHERE month = $1)
        AND batch_ended_at < (SELECT ends_at FROM finished_month WHERE month = $1)
        AND instance_id > $2
    ORDER BY instance_id
    LIMIT $3
) AS instance
LEFT JOIN LATERAL jsonb_array_elements(instance.uploads) AS output (file) ON true
ORDER BY instance.instance_id, name;
