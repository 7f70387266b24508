-- Purpose: a volunteer's computers, newest first, with how much each has in progress.
-- Arguments: $1 volunteer_id, $2 host_id before which to go on, $3 limit.
-- Result: hosts by id, descending, with in_progress.
SELECT
    host.*,
    (SELECT count(*) FROM instance WHERE instance.host_id = host.host_id AND instance.state = 'in_progress') AS in_progress
FROM (
    SELECT *
    FROM host AS own
    WHERE own.volunteer_id = $1 AND own.host_id + 0 < $2  -- not by the key: that would go through everybody's hosts
    ORDER BY own.host_id + 0 DESC
    LIMIT $3
) AS host
ORDER BY host.host_id DESC;
