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
