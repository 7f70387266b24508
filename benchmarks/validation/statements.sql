-- name: report
-- Purpose: results of waiting jobs of all batches, in random order, as hosts 1 to $5 would report them, and their marks.
-- Arguments: $1 how many, $2 sent_at, $3 reported_at, $4 app_version_id, $5 hosts.
-- Result: none.
WITH chosen AS (
    SELECT instance_id, (row_number() OVER (ORDER BY md5(instance_id::text)) % $5::int + 1)::int AS host_id
    FROM instance
    WHERE state = 'unsent'
    ORDER BY md5(instance_id::text)
    LIMIT $1
),
reported AS (
    UPDATE instance SET
        state = 'reported', host_id = chosen.host_id, volunteer_id = (chosen.host_id + 1) / 2, app_version_id = $4::int,
        sent_at = $2::double precision, due_at = $3::double precision + 86400, timeout_at = $3::double precision + 172800,
        reported_at = $3::double precision, est_runtime_s = 3600, elapsed_s = 3000
    FROM chosen
    WHERE instance.instance_id = chosen.instance_id
    RETURNING instance.job_id, instance.batch_id, instance.instance_id
),
counted AS (
    INSERT INTO batch_count AS old (batch_id, stripe, unsent, sent, reported)
    SELECT batch_id, 0, -count(*), count(*), count(*) FROM reported GROUP BY batch_id
    ON CONFLICT (batch_id, stripe) DO UPDATE SET
        unsent = old.unsent + excluded.unsent, sent = old.sent + excluded.sent, reported = old.reported + excluded.reported
)
INSERT INTO job_todo (job_id, serial)
SELECT job_id, nextval('job_todo_serial') FROM (SELECT job_id FROM reported ORDER BY md5(instance_id::text)) AS marked;


-- name: settled
-- Purpose: whether no job is left to settle.
-- Arguments: none.
-- Result: settled.
SELECT NOT EXISTS (SELECT FROM job_todo) AS settled;


-- name: validated
-- Purpose: how many jobs are valid, by the counters of batches, and how many results, by the statistics of hosts.
-- Arguments: none.
-- Result: jobs, results.
SELECT
    (SELECT coalesce(sum(jobs_validated), 0)::bigint FROM batch_count) AS jobs,
    (SELECT coalesce(sum(n_valid), 0)::bigint FROM host_app_version) AS results;
