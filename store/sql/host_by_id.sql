-- Purpose: one host.
-- Arguments: $1 host_id.
-- Result: the host; no row when there is none.
SELECT * FROM host WHERE host_id = $1::bigint;
