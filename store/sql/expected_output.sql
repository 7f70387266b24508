-- Purpose: what is known of one output: the state of its instance, and what was recorded.
-- Arguments: $1 instance_id, $2 name.
-- Result: state, nbytes and md5 (null: not recorded); no row when there is no such instance.
SELECT instance.state, upload.nbytes, upload.md5
FROM instance
LEFT JOIN upload ON upload.instance_id = instance.instance_id AND upload.name = $2
WHERE instance.instance_id = $1
UNION ALL
SELECT finished_instance.state, (output.file ->> 'nbytes')::bigint, output.file ->> 'md5'
FROM finished_instance
LEFT JOIN LATERAL (
    SELECT part.file FROM jsonb_array_elements(finished_instance.uploads) AS part (file) WHERE part.file ->> 'name' = $2
) AS output ON true
WHERE finished_instance.instance_id = $1;
