-- Purpose: the first two outages that are not made up for; locked until the transaction ends.
-- Arguments: none.
-- Result: outages by outage_id.
SELECT outage_id, alive_until, ended_at, moved_down_to, moved_down_to_id
FROM outage
WHERE NOT over
ORDER BY outage_id
LIMIT 2
FOR UPDATE;
