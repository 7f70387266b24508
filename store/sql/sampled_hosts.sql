-- Purpose: some of the hosts that called lately, drawn by their ids alone, and how many there are.
-- Arguments: $1 since when a host has called, $2 how many hosts at most.
-- Result: hosts by id, each with active, the number of hosts that called since.
SELECT host.*, sampled.active
FROM (
    SELECT host_id, count(*) OVER () AS active
    FROM host
    WHERE last_rpc_at >= $1::double precision
    ORDER BY md5(host_id::text) COLLATE "C", host_id
    LIMIT $2::int
) AS sampled
JOIN host ON host.host_id = sampled.host_id
ORDER BY host.host_id;
