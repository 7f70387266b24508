-- Purpose: outputs that are whole on disk, some at a time.
-- Arguments: $1 instance_id and $2 name behind which to look, $3 how many.
-- Result: instance_id, name, nbytes, md5; by instance and name.
SELECT instance_id, name, nbytes, md5
FROM upload
WHERE (instance_id, name) > ($1, $2)
ORDER BY instance_id, name
LIMIT $3;
