-- Purpose: how large is an output that was recorded, whether or not its instance was moved to the history?
-- Arguments: $1 instance_id, $2 name.
-- Result: nbytes; no row when it was not recorded.
SELECT nbytes FROM upload WHERE instance_id = $1 AND name = $2
UNION ALL
SELECT (output.file ->> 'nbytes')::bigint AS nbytes
FROM finished_instance
CROSS JOIN LATERAL jsonb_array_elements(finished_instance.uploads) AS output (file)
WHERE finished_instance.instance_id = $1 AND output.file ->> 'name' = $2
LIMIT 1;
