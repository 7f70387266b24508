-- Purpose: record an output that became whole after its instance was moved to the history; the rules of record_upload.
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
