-- Purpose: how large the jobs of some batches are, and what they ask for.
-- Arguments: $1 batch_ids.
-- Result: batch_id, flop of a job on average, and the most its classes ask for: memory_bytes, ncpus, quorum.
SELECT
    batch.batch_id, batch.batch_flop / (batch.jobs_total * class.quorum) AS flop, class.memory_bytes, class.ncpus,
    class.quorum
FROM batch
CROSS JOIN LATERAL (
    SELECT max(memory_bytes) AS memory_bytes, max(ncpus) AS ncpus, max(quorum) AS quorum
    FROM job_class
    WHERE job_class.batch_id = batch.batch_id
) AS class
WHERE batch.batch_id = ANY($1::bigint[])
ORDER BY batch.batch_id;
