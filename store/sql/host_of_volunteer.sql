-- Purpose: one of a volunteer's computers.
-- Arguments: $1 volunteer_id, $2 host_id.
-- Result: the host with in_progress; no row when there is none, or it is somebody else's.
SELECT
    host.*,
    (SELECT count(*) FROM instance WHERE instance.host_id = host.host_id AND instance.state = 'in_progress') AS in_progress
FROM host
WHERE host.host_id = $2::bigint AND host.volunteer_id + 0 = $1;
