-- Purpose: which files of the upload folder does nobody need? Not recorded, and of no instance that waits or is under way.
-- Arguments: $1 names, $2 instance_ids their names end in (arrays).
-- Result: name of each that nobody needs; by name.
SELECT file.name
FROM unnest($1::text[], $2::bigint[]) AS file (name, instance_id)
LEFT JOIN instance ON instance.instance_id = file.instance_id
WHERE coalesce(instance.state NOT IN ('unsent', 'in_progress'), true)
    AND NOT EXISTS (SELECT FROM upload WHERE upload.instance_id = file.instance_id AND upload.name = file.name)
    AND NOT EXISTS (
        SELECT FROM finished_instance
        WHERE finished_instance.instance_id = file.instance_id
            AND finished_instance.uploads @> jsonb_build_array(jsonb_build_object('name', file.name))
    )
ORDER BY file.name;
