-- Purpose: how far a look at a volunteer's last results comes.
-- Arguments: $1 volunteer_id, $2 and $3 sent_at and instance_id behind which it begins, $4 how many are looked at, less one.
-- Result: sent_at and instance_id of the last one, and of the one after it; less at the end of all.
SELECT sent_at, instance_id
FROM instance
WHERE volunteer_id = $1
    AND state NOT IN ('unsent', 'in_progress', 'cancelled')
    AND (sent_at, instance_id) < ($2, $3::bigint)
ORDER BY sent_at DESC, instance_id DESC
OFFSET $4
LIMIT 2;
