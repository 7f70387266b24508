-- Purpose: keep the standard error of instances.
-- Arguments: $1 instance_ids, $2 texts (arrays, the instance_ids distinct).
-- Result: none.
INSERT INTO instance_stderr (instance_id, stderr)
SELECT * FROM unnest($1::bigint[], $2::text[]) AS new (instance_id, stderr) ORDER BY new.instance_id
ON CONFLICT (instance_id) DO UPDATE SET stderr = excluded.stderr;
