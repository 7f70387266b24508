-- Purpose: hosts.
-- Arguments: $1 limit, $2 host_id after which to go on, 0 for the start.
-- Result: hosts by id.
SELECT * FROM host WHERE host_id > $2 ORDER BY host_id LIMIT $1;
