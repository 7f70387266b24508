-- Purpose: leases that are not over, and what became of their hosts and batches.
-- Arguments: none.
-- Result: rows of lease by host_id, with the batch's unsent instances, whether the host has been sent one since, and when
--   the host calls.
SELECT
    lease.host_id, lease.batch_id, lease.processor_type, lease.cores, lease.start_at, lease.limit_s, lease.made_at,
    lease.expires_at, lease.ended_at, lease.because,
    CASE WHEN batch.state = 'active' THEN batch.unsent ELSE 0 END AS unsent,
    EXISTS (
        SELECT FROM instance
        WHERE instance.host_id = lease.host_id AND instance.state = 'in_progress'
            AND instance.batch_id = lease.batch_id AND instance.sent_at >= lease.made_at
    ) AS given,
    host.last_rpc_at, host.rpc_interval_s
FROM lease
JOIN host ON host.host_id = lease.host_id
JOIN batch_with_counts AS batch ON batch.batch_id = lease.batch_id
WHERE lease.ended_at IS NULL
ORDER BY lease.host_id;
