-- Purpose: a host by what its next request would be looked up.
-- Arguments: $1 host_id.
-- Result: a caller; no row when there is no such host.
SELECT host.host_id, host.host_cpid, host.last_rpc_at, host.rpc_interval_s, volunteer.authenticator_hash
FROM host
JOIN volunteer USING (volunteer_id)
WHERE host.host_id = $1::bigint;
