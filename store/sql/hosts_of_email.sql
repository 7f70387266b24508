-- Purpose: the hosts of the volunteer with an e-mail address, newest first.
-- Arguments: $1 e-mail in lower case, $2 host_id before which to go on, $3 limit.
-- Result: hosts by id, descending.
WITH found AS MATERIALIZED (  -- else the hosts of everybody are looked through in the order of their ids
    SELECT host.*
    FROM volunteer
    JOIN host ON host.volunteer_id = volunteer.volunteer_id
    WHERE volunteer.email = $1 AND host.host_id < $2
)
SELECT * FROM found ORDER BY host_id DESC LIMIT $3;
