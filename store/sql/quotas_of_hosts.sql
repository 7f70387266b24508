-- Purpose: the accounts and networks of hosts, with the accounts' quotas. Nothing is locked.
-- Arguments: $1 host_ids.
-- Result: host_id, volunteer_id, network and earned, of the hosts whose account has drawn on its quota; in order.
SELECT host.host_id, host.volunteer_id, host.network, quota.earned
FROM host
JOIN shared_quota AS quota ON quota.name = 'volunteer ' || host.volunteer_id
WHERE host.host_id = ANY($1::int[])
ORDER BY host.host_id;
