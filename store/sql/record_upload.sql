-- Purpose: record that an output is whole on disk. Repeating a record changes nothing. Other content of a recorded name is
--   recorded only with $7. The instance is locked, so that its state cannot change before this transaction ends.
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
