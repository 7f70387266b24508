-- Purpose: what the database knows of some files of the upload folder.
-- Arguments: $1 names, $2 instance_ids their names end in (arrays).
-- Result: name, state (of the instance; null: there is none), nbytes and md5 (null: it was not recorded),
--   reported_success (its host reported the instance with exit status 0).
SELECT
    file.name, coalesce(instance.state, finished_instance.state) AS state,
    coalesce(upload.nbytes, (output.file ->> 'nbytes')::bigint) AS nbytes,
    coalesce(upload.md5, output.file ->> 'md5') AS md5,
    coalesce(coalesce(instance.reported_at, finished_instance.reported_at) IS NOT NULL
        AND coalesce(instance.exit_status, finished_instance.exit_status) = 0, false) AS reported_success
FROM unnest($1::text[], $2::bigint[]) AS file (name, instance_id)
LEFT JOIN instance ON instance.instance_id = file.instance_id
LEFT JOIN upload ON upload.instance_id = file.instance_id AND upload.name = file.name
LEFT JOIN finished_instance ON finished_instance.instance_id = file.instance_id
LEFT JOIN LATERAL (
    SELECT part.file FROM jsonb_array_elements(finished_instance.uploads) AS part (file) WHERE part.file ->> 'name' = file.name
) AS output ON true;
