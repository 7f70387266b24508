-- Purpose: how far a look at the newest hosts comes.
-- Arguments: $1 host_id before which it begins, $2 how many are looked at, less one.
-- Result: host_id of the last one, and of the one after it; less at the end of all hosts.
SELECT host_id FROM host WHERE host_id < $1 ORDER BY host_id DESC OFFSET $2 LIMIT 2;
