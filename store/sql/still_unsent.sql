-- Purpose: which of some instances are still unsent.
-- Arguments: $1 instance_ids.
-- Result: instance_id, ascending.
SELECT instance_id
FROM instance
WHERE instance_id = ANY($1::bigint[]) AND state = 'unsent'
ORDER BY instance_id;
