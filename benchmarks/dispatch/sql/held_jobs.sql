-- Purpose: jobs that hosts 1 to $5 have in progress, the same number each, and what they add to the batch's counters.
-- Arguments: $1 batch_id, $2 job_class_id, $3 how many, $4 sent_at, $5 hosts, $6 app_version_id, $7 due_at.
-- Result: none.
WITH job_made AS (
    INSERT INTO job (batch_id, job_class_id, command_line)
    SELECT $1::bigint, $2::bigint, '--steps 1000 --seed ' || n
    FROM generate_series(1, $3::int) AS n
    RETURNING job_id
),
given AS (
    SELECT job_id, ((row_number() OVER (ORDER BY job_id) - 1) % $5::int + 1)::int AS host_id FROM job_made
),
instance_made AS (
    INSERT INTO instance (
        job_id, batch_id, job_class_id, shard, state, created_at, host_id, volunteer_id, app_version_id, sent_at, due_at,
        timeout_at, est_runtime_s
    )
    SELECT
        job_id, $1::bigint, $2::bigint, (job_id % 64)::smallint, 'in_progress', $4::double precision, host_id,
        (host_id + 1) / 2, $6::int, $4::double precision, $7::double precision, $7::double precision + 86400, 3600
    FROM given
    ORDER BY job_id
    RETURNING instance_id
)
INSERT INTO batch_count AS old (batch_id, stripe, in_progress, sent, last_first_dispatch_at)
SELECT $1::bigint, 0, count(*), count(*), $4::double precision FROM instance_made HAVING count(*) > 0
ON CONFLICT (batch_id, stripe) DO UPDATE SET
    in_progress = old.in_progress + excluded.in_progress,
    sent = old.sent + excluded.sent,
    last_first_dispatch_at = excluded.last_first_dispatch_at;
