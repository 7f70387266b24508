-- name: alike_hosts
-- Purpose: return active hosts grouped by their homogeneous-redundancy properties and by what they can run.
-- Arguments: $1 instant since which a call counts.
-- Result: rows (os_name, cpu_vendor, platforms, hosts, cores, flop_per_s of all, mean seconds between calls).
SELECT
    os_name, cpu_vendor, platforms, count(*) AS hosts, sum(ncpus)::double precision AS cores,
    sum(ncpus * flop_per_s * on_fraction * active_fraction) AS flop_per_s, coalesce(avg(rpc_interval_s), 0) AS interval_s
FROM host
WHERE last_rpc_at >= $1
GROUP BY os_name, cpu_vendor, platforms
ORDER BY os_name, cpu_vendor, platforms;


-- name: big_batches
-- Purpose: return the first waiting, unblocked and unpaused batches whose jobs may be big.
-- Arguments: $1 least cores, $2 least memory_bytes, $3 least disk_bytes of one job, $4 app_ids whose jobs always are,
--   $5 limit.
-- Result: rows in the batches' order: batch_id, app_id, instances sent, and the most that one of its jobs asks for.
SELECT first.batch_id, first.app_id, counts.sent, first.cores, first.memory_bytes, first.disk_bytes
FROM (
    SELECT batch.batch_id, batch.app_id, batch.order_tier, batch.order_key, class.*
    FROM batch
    CROSS JOIN LATERAL (  -- by its index, one batch after the other
        SELECT max(ncpus) AS cores, max(memory_bytes) AS memory_bytes, max(disk_bytes) AS disk_bytes
        FROM job_class
        WHERE job_class.batch_id = batch.batch_id
    ) AS class
    WHERE batch.state = 'active' AND batch.waiting AND batch.hold IS NULL
        AND batch.batch_id NOT IN (SELECT name::bigint FROM restriction WHERE kind = 'batch')
        AND batch.app_id NOT IN (SELECT name::int FROM restriction WHERE kind = 'app')
        AND batch.queue NOT IN (SELECT name FROM restriction WHERE kind = 'queue')
        AND (
            batch.app_id = ANY ($4::int[])
            OR class.cores >= $1 OR class.memory_bytes >= $2 OR class.disk_bytes >= $3
        )
    ORDER BY batch.order_tier, batch.order_key, batch.batch_id
    LIMIT $5
) AS first
CROSS JOIN LATERAL (
    SELECT coalesce(sum(sent), 0)::bigint AS sent, coalesce(sum(unsent), 0)::bigint AS unsent
    FROM batch_count
    WHERE batch_count.batch_id = first.batch_id
) AS counts
WHERE counts.unsent > 0
ORDER BY first.order_tier, first.order_key, first.batch_id;


-- name: end_leases
-- Purpose: end leases, each with its reason.
-- Arguments: $1 host_ids, $2 batch_ids, $3 reasons (arrays, one entry per lease), $4 ended_at.
-- Result: none.
UPDATE lease
SET ended_at = $4, because = ended.because
FROM unnest($1::int[], $2::bigint[], $3::text[]) AS ended (host_id, batch_id, because)
WHERE lease.host_id = ended.host_id AND lease.batch_id = ended.batch_id AND lease.ended_at IS NULL;


-- name: forget_leases
-- Purpose: delete leases that ended long ago, and used ones at once: their hosts may get a new one.
-- Arguments: $1 instant until which the others are forgotten, $2 host_ids of used ones.
-- Result: none.
DELETE FROM lease WHERE ended_at IS NOT NULL AND (ended_at < $1 OR host_id = ANY ($2::int[]));


-- name: give_up_shard
-- Purpose: release a shard.
-- Arguments: $1 class, $2 shard.
-- Result: none.
SELECT pg_advisory_unlock($1, $2);


-- name: insert_leases
-- Purpose: lease hosts to batches, where neither the host nor the batch has a lease.
-- Arguments: $1 host_ids, $2 batch_ids, $3 processor_types, $4 cores, $5 start_at, $6 limit_s, $7 made_at, $8 expires_at
--   (arrays, one entry per lease, by batch).
-- Result: none.
INSERT INTO lease (host_id, batch_id, processor_type, cores, start_at, limit_s, made_at, expires_at)
SELECT *
FROM unnest(
    $1::int[], $2::bigint[], $3::text[], $4::double precision[], $5::double precision[], $6::double precision[],
    $7::double precision[], $8::double precision[]
)
ON CONFLICT DO NOTHING;


-- name: join_workers
-- Purpose: register this worker as alive; held until the connection ends.
-- Arguments: $1 class.
-- Result: none.
SELECT pg_advisory_lock_shared($1, -1);


-- name: list_leases
-- Purpose: return the last lease of every host that recently had one.
-- Arguments: none.
-- Result: rows of lease by host_id.
SELECT host_id, batch_id, processor_type, cores, start_at, limit_s, made_at, expires_at, ended_at, because
FROM lease
ORDER BY host_id;


-- name: note_report
-- Purpose: store the report of a periodic task.
-- Arguments: $1 name, $2 done_at, $3 report (JSON).
-- Result: none.
INSERT INTO duty (name, done_at, report) VALUES ($1, $2, $3::jsonb)
ON CONFLICT (name) DO UPDATE SET done_at = excluded.done_at, report = excluded.report;


-- name: queued_of_classes
-- Purpose: return the unsent work of some batches that is committed to a host class.
-- Arguments: $1 batch_ids.
-- Result: rows (app_id, hr_type, hr_class, flop).
SELECT batch.app_id, job_class.hr_type, job.hr_class, sum(job_class.fpops_est_flop) AS flop
FROM unnest($1::bigint[]) AS wanted (batch_id)
JOIN batch ON batch.batch_id = wanted.batch_id
CROSS JOIN LATERAL (  -- through the two indexes that the feeder reads by
    SELECT job_id, job_class_id FROM instance
    WHERE instance.batch_id = wanted.batch_id AND instance.state = 'unsent' AND NOT instance.urgent
    UNION ALL
    SELECT job_id, job_class_id FROM instance
    WHERE instance.batch_id = wanted.batch_id AND instance.state = 'unsent' AND instance.urgent
) AS waiting
JOIN job ON job.job_id = waiting.job_id AND job.hr_class <> 0
JOIN job_class ON job_class.job_class_id = waiting.job_class_id
GROUP BY batch.app_id, job_class.hr_type, job.hr_class
ORDER BY batch.app_id, job_class.hr_type, job.hr_class;


-- name: redundant_batches
-- Purpose: return waiting batches with homogeneous-redundancy jobs.
-- Arguments: none.
-- Result: distinct rows (batch_id, app_id, hr_type).
SELECT DISTINCT batch.batch_id, batch.app_id, job_class.hr_type
FROM batch
JOIN job_class ON job_class.batch_id = batch.batch_id
WHERE batch.state = 'active' AND batch.waiting AND job_class.hr_type > 0
ORDER BY batch.batch_id, job_class.hr_type;


-- name: report_of_duty
-- Purpose: return the latest report of a periodic task.
-- Arguments: $1 name.
-- Result: report (JSON); no row before the first time.
SELECT report FROM duty WHERE name = $1;


-- name: shard_holders
-- Purpose: return the holders of shards, and the live workers.
-- Arguments: $1 class.
-- Result: me, workers, and taken, the shards that are held; me and workers are process ids, ascending.
SELECT
    pg_backend_pid() AS me,
    coalesce(array_agg(pid ORDER BY pid) FILTER (WHERE objid = 4294967295), '{}') AS workers,
    coalesce(array_agg(objid::bigint ORDER BY objid::bigint) FILTER (WHERE objid <> 4294967295), '{}') AS taken
FROM pg_locks
WHERE locktype = 'advisory'
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND classid::bigint = $1
    AND objsubid = 2
    AND granted;


-- name: standing_leases
-- Purpose: return leases in force, and the state of their hosts and batches.
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


-- name: try_lock_shard
-- Purpose: take a shard unless another worker has it; held until released or the connection ends.
-- Arguments: $1 class, $2 shard.
-- Result: taken.
SELECT pg_try_advisory_lock($1, $2) AS taken;
