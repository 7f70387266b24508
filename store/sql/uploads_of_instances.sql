-- Purpose: what instances brought.
-- Arguments: $1 instance_ids.
-- Result: instances that brought something, with their uploads (JSON).
SELECT
    instance_id,
    jsonb_agg(jsonb_build_object('name', name, 'nbytes', nbytes, 'md5', md5) ORDER BY name) AS uploads
FROM upload
WHERE instance_id = ANY($1::bigint[])
GROUP BY instance_id;
