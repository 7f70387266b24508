-- Purpose: the trickle messages of an instance, in the order they came.
-- Arguments: $1 instance_id, $2 after which trickle_id, $3 limit.
-- Result: trickle_id, instance_id, sent_at, received_at, variety, text.
SELECT trickle_id, instance_id, sent_at, received_at, variety, text
FROM trickle
WHERE instance_id = $1 AND trickle_id > $2
ORDER BY trickle_id
LIMIT $3;
