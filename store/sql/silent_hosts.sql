-- Purpose: hosts that have not called since an instant, newest first.
-- Arguments: $1 host_id before which to go on, $2 host_id of the last one that is looked at, $3 the instant, $4 limit.
-- Result: host_id, descending.
SELECT host_id
FROM host
WHERE host_id < $1 AND host_id >= $2 AND last_rpc_at < $3
ORDER BY host_id DESC
LIMIT $4;
