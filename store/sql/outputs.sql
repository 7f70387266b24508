-- name: expected_output
-- Purpose: return the record of one output and the state of its instance.
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


-- name: record_finished_upload
-- Purpose: record an output completed after its instance was moved to the history; with the rules of record_upload.
-- Arguments: $1 instance_id, $2 name, $3 nbytes, $4 md5, $5 completed_at, $6 states that accept outputs, $7 replace.
-- Result: instance_id; no row when there is no such instance, its state does not accept outputs, or other content is recorded.
WITH found AS (
    SELECT instance_id, batch_ended_at, coalesce(uploads, '[]') AS uploads
    FROM finished_instance
    WHERE instance_id = $1
        AND (
            uploads @> jsonb_build_array(jsonb_build_object('name', $2::text, 'nbytes', $3::bigint, 'md5', $4::text))
            OR state = ANY($6::text[])
            AND ($7::boolean OR NOT coalesce(uploads @> jsonb_build_array(jsonb_build_object('name', $2::text)), false))
        )
    FOR NO KEY UPDATE
),
others AS (
    SELECT file FROM found CROSS JOIN LATERAL jsonb_array_elements(found.uploads) AS old (file) WHERE file ->> 'name' <> $2
),
old AS (
    SELECT count(*) AS files, coalesce(sum((file ->> 'nbytes')::bigint), 0)::bigint AS file_bytes
    FROM found
    CROSS JOIN LATERAL jsonb_array_elements(found.uploads) AS before (file)
    WHERE file ->> 'name' = $2
),
counted AS (
    UPDATE finished_month SET
        files = finished_month.files + 1 - old.files,
        file_bytes = finished_month.file_bytes + $3::bigint - old.file_bytes
    FROM found, old
    WHERE finished_month.starts_at <= found.batch_ended_at AND found.batch_ended_at < finished_month.ends_at
)
UPDATE finished_instance SET uploads = (
    SELECT jsonb_agg(file ORDER BY file ->> 'name')
    FROM (
        SELECT file FROM others
        UNION ALL
        SELECT jsonb_build_object('name', $2::text, 'nbytes', $3::bigint, 'md5', $4::text, 'completed_at', $5::double precision)
    ) AS files (file)
)
FROM found
WHERE finished_instance.batch_ended_at = found.batch_ended_at AND finished_instance.instance_id = found.instance_id
RETURNING finished_instance.instance_id;


-- name: record_upload
-- Purpose: record that an output is complete on disk. Idempotent. Other content of a recorded name is recorded only
--   with $7. The instance is locked, so that its state cannot change before this transaction ends.
-- Arguments: $1 instance_id, $2 name, $3 nbytes, $4 md5, $5 completed_at, $6 states that accept outputs, $7 replace.
-- Result: instance_id; no row when there is no such instance, its state does not accept outputs, or other content is recorded.
INSERT INTO upload AS old (instance_id, name, nbytes, md5, completed_at)
SELECT instance_id, $2, $3, $4, $5
FROM instance
WHERE instance_id = $1
    AND (
        state = ANY($6::text[])
        OR EXISTS (
            SELECT FROM upload
            WHERE upload.instance_id = $1 AND upload.name = $2 AND upload.nbytes = $3 AND upload.md5 = $4
        )
    )
FOR SHARE
ON CONFLICT (instance_id, name) DO UPDATE SET
    nbytes = excluded.nbytes, md5 = excluded.md5, completed_at = excluded.completed_at
WHERE $7::boolean OR (old.nbytes = excluded.nbytes AND old.md5 = excluded.md5)
RETURNING instance_id;


-- name: unneeded_files
-- Purpose: return the unneeded files of the upload folder: not recorded, and of no instance that is unsent or in
--   progress.
-- Arguments: $1 names, $2 instance_ids their names end in (arrays).
-- Result: name of each unneeded file; by name.
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
