-- name: cut_points
-- Purpose: the cut points of the histories, as a run of the host statistics would leave them.
-- Arguments: $1 computed_at, $2 app_id.
-- Result: none.
WITH generation AS (
    INSERT INTO percentile_generation (computed_at, complete) VALUES ($1::double precision, true) RETURNING generation
),
pointer AS (
    INSERT INTO percentile_pointer (generation) SELECT generation FROM generation
),
population AS (
    SELECT avg(relaxed_sum / relaxed_n) AS score_mean FROM host_app_version
),
score AS (
    SELECT
        consecutive_valid, score_mean, tight_sum / tight_n AS tight,
        (relaxed_sum + 2 * score_mean) / (relaxed_n + 2) AS score
    FROM host_app_version
    CROSS JOIN population
)
INSERT INTO cut_points (
    generation, app_id, processor_type, n, turnaround, consecutive_valid, score_mean, tight_n, tight_mean, tight_sd,
    retry_turnaround_s
)
SELECT
    (SELECT generation FROM generation), $2::int, 'cpu', count(*),
    percentile_cont(ARRAY(SELECT (i + 0.5) / 1000 FROM generate_series(0, 999) AS i)) WITHIN GROUP (ORDER BY score),
    ARRAY(
        SELECT (SELECT count(*) FROM score AS row WHERE row.consecutive_valid = k)
        FROM generate_series(0, 10) AS k
        ORDER BY k
    ),
    avg(score_mean), 50 * count(*), avg(tight), 0.4, 7200
FROM score;


-- name: held_instances
-- Purpose: what hosts have in progress.
-- Arguments: none.
-- Result: host_id, batch_id, job_id, instance_id, by host and instance.
SELECT host_id, batch_id, job_id, instance_id
FROM instance
WHERE state = 'in_progress'
ORDER BY host_id, instance_id;


-- name: held_jobs
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


-- name: histories
-- Purpose: what hosts 1 to $1 did with a version so far. Long histories: what a run adds to them moves nothing.
--   Speeds are log-normal around 1e9 flop/s, ln(turnaround / R) is normal, up to 40 valid results in a row.
-- Arguments: $1 how many, $2 app_version_id, $3 stats_at, $4 quota_per_day, $5 n_valid.
-- Result: none.
INSERT INTO host_app_version (
    host_id, app_version_id, consecutive_valid, quota_per_day, stats_at, speed_n, speed_sum, speed_sum_sq, tight_n,
    tight_sum, tight_sum_sq, relaxed_n, relaxed_sum, relaxed_sum_sq, log_n, log_sum, log_sum_sq, n_valid, n_due
)
SELECT
    n, $2::int, consecutive_valid, $4::int, $3::double precision,
    200, 200 * speed, 200 * 1.01 * speed ^ 2,
    50, 50 * tight, 50 * (tight ^ 2 + 0.1),
    200, 200 * relaxed, 200 * (relaxed ^ 2 + 0.2),
    250, 250 * (relaxed + ln(3600)), 250 * ((relaxed + ln(3600)) ^ 2 + 0.2),
    $5::bigint, 250
FROM (
    SELECT
        n, floor(40 * random())::int AS consecutive_valid, 1e-9 * exp(random_normal(0, 0.5)) AS speed,
        random_normal(0.3, 0.3) AS tight, random_normal(0.6, 0.4) AS relaxed
    FROM generate_series(1, $1::int) AS n
) AS host
ORDER BY n;


-- name: hosts
-- Purpose: hosts 1 to $1, two per volunteer; the CPID of number n is md5('host n').
-- Arguments: $1 how many, $2 created_at, $3 last_rpc_at, $4 processors.
-- Result: none.
INSERT INTO host (
    host_id, volunteer_id, host_cpid, rpc_seqno, created_at, last_rpc_at, rpc_interval_s, domain_name, ncpus, flop_per_s,
    ram_bytes, disk_free_bytes, on_fraction, active_fraction, gpu_active_fraction, platforms, os_name, os_version,
    client_version
)
SELECT
    n, (n + 1) / 2, md5('host ' || n), 1, $2::double precision, $3::double precision, 3600, 'host' || n || '.example',
    $4::int, 1e9, 2e10, 8e10, 1, 1, 1, '{x86_64-pc-linux-gnu}', 'Linux Debian', 'Debian GNU/Linux 12', 72005
FROM generate_series(1, $1::int) AS n
ORDER BY n;


-- name: publish_forecast
-- Purpose: a batch's forecast, as the estimator would publish it.
-- Arguments: $1 batch_id, $2 completion_at.
-- Result: none.
UPDATE batch SET completion_at = $2::double precision WHERE batch_id = $1::bigint;


-- name: sent_since
-- Purpose: what was sent; reads every instance.
-- Arguments: $1 sent_at from which on.
-- Result: host_id, job_id, instance_id, and 1 for a copy or a retry, else 0; by instance.
SELECT host_id, job_id, instance_id, (copied_because IS NOT NULL OR retries > 0)::int AS is_copy
FROM instance WHERE sent_at >= $1::double precision ORDER BY instance_id;


-- name: volunteers
-- Purpose: volunteers 1 to $1; the account key of number n is md5('volunteer n').
-- Arguments: $1 how many, $2 created_at.
-- Result: none.
INSERT INTO volunteer (
    volunteer_id, email, name, authenticator_nonce, authenticator_hash, cross_project_id, created_at
)
SELECT
    n, 'volunteer' || n || '@example.org', 'Volunteer ' || n, decode(md5('nonce ' || n), 'hex'),
    sha256(convert_to(md5('volunteer ' || n), 'UTF8')), md5('cross project ' || n), $2::double precision
FROM generate_series(1, $1::int) AS n
ORDER BY n;


-- name: waiting
-- Purpose: how much there is to do.
-- Arguments: none.
-- Result: unsent instances, by the counters.
SELECT coalesce(sum(unsent), 0)::bigint AS unsent FROM batch_count;


-- name: waiting_jobs
-- Purpose: jobs of a batch with one unsent instance each, and what they add to its counters.
-- Arguments: $1 batch_id, $2 job_class_id, $3 how many, $4 created_at.
-- Result: none.
WITH job_made AS (
    INSERT INTO job (batch_id, job_class_id, command_line)
    SELECT $1::bigint, $2::bigint, '--steps 1000 --seed ' || n
    FROM generate_series(1, $3::int) AS n
    RETURNING job_id
),
instance_made AS (
    INSERT INTO instance (job_id, batch_id, job_class_id, shard, created_at)
    SELECT job_id, $1::bigint, $2::bigint, (job_id % 64)::smallint, $4::double precision
    FROM job_made
    ORDER BY job_id
    RETURNING instance_id
)
INSERT INTO batch_count AS old (batch_id, stripe, unsent)
SELECT $1::bigint, 0, count(*) FROM instance_made HAVING count(*) > 0
ON CONFLICT (batch_id, stripe) DO UPDATE SET unsent = old.unsent + excluded.unsent;
