-- Purpose: remember that an output is whole on disk; a newer upload of the same name takes its place.
-- Arguments: $1 instance_id, $2 name, $3 nbytes, $4 md5, $5 completed_at.
-- Result: instance_id; no row when there is no such instance.
INSERT INTO upload (instance_id, name, nbytes, md5, completed_at)
SELECT instance_id, $2, $3, $4, $5 FROM instance WHERE instance_id = $1
ON CONFLICT (instance_id, name) DO UPDATE SET
    nbytes = excluded.nbytes, md5 = excluded.md5, completed_at = excluded.completed_at
RETURNING instance_id;
