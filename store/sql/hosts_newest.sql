-- Purpose: hosts, newest first.
-- Arguments: $1 host_id before which to go on, $2 limit.
-- Result: host_id, descending.
SELECT host_id FROM host WHERE host_id < $1 ORDER BY host_id DESC LIMIT $2;
