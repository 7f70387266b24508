-- Purpose: the hosts of the volunteer with an e-mail address, newest first.
-- Arguments: $1 e-mail in lower case, $2 host_id before which to go on, $3 limit.
-- Result: host_id, descending.
SELECT host.host_id
FROM host
WHERE host.volunteer_id = (SELECT volunteer.volunteer_id FROM volunteer WHERE volunteer.email = $1)
    AND host.host_id + 0 < $2  -- not by the key: that would go through everybody's hosts
ORDER BY host.host_id + 0 DESC
LIMIT $3;
