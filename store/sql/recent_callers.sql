-- Purpose: the hosts that called last, by what their next requests would be looked up.
-- Arguments: $1 limit.
-- Result: callers, the latest first.
SELECT host.host_id, host.host_cpid, host.last_rpc_at, host.rpc_interval_s, volunteer.authenticator_hash
FROM host
JOIN volunteer USING (volunteer_id)
ORDER BY host.last_rpc_at DESC, host.host_id DESC
LIMIT $1;
