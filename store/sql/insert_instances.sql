-- Purpose: new unsent instances of jobs; urgent for a retry, or when a sibling is back.
-- Arguments: $1 job_ids, $2 batch_ids, $3 job_class_ids, $4 shards, $5 how many, $6 retries, $7 created_at (arrays, one entry per
--   job).
-- Result: none.
INSERT INTO instance (job_id, batch_id, job_class_id, shard, retries, urgent, created_at)
SELECT
    new.job_id, new.batch_id, new.job_class_id, new.shard, least(new.retries, 32767),
    new.retries > 0 OR (
        SELECT count(*)  -- not EXISTS, which may be planned as a hash of all instances
        FROM instance AS sibling
        WHERE sibling.job_id = new.job_id AND sibling.state IN ('reported', 'inconclusive')
    ) > 0,
    new.created_at
FROM unnest(
    $1::bigint[], $2::bigint[], $3::bigint[], $4::smallint[], $5::int[], $6::int[], $7::double precision[]
) WITH ORDINALITY AS new (job_id, batch_id, job_class_id, shard, count, retries, created_at, position)
CROSS JOIN LATERAL generate_series(1, new.count)
ORDER BY new.position;
