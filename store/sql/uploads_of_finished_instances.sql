-- Purpose: what instances of a batch that are in the history brought.
-- Arguments: $1 batch_id, $2 instance_ids.
-- Result: instances that brought something, with their uploads (JSON).
SELECT instance_id, uploads
FROM finished_instance
WHERE
    batch_ended_at = (SELECT ended_at FROM batch WHERE batch.batch_id = $1)
    AND instance_id = ANY($2::bigint[])
    AND uploads IS NOT NULL;
