-- Purpose: one more unsent instance of each of some jobs, urgent like the retry it may save, and why.
-- Arguments: $1 job_ids, $2 batch_ids, $3 job_class_ids, $4 shards, $5 retries, $6 reasons (arrays, one entry per job),
--   $7 created_at.
-- Result: none. They wait in the order given: instance ids ascend in it.
INSERT INTO instance (job_id, batch_id, job_class_id, shard, retries, urgent, created_at, copied_because)
SELECT new.job_id, new.batch_id, new.job_class_id, new.shard, least(new.retries, 32767), true, $7, new.because
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::smallint[], $5::int[], $6::text[]) WITH ORDINALITY
    AS new (job_id, batch_id, job_class_id, shard, retries, because, place)
ORDER BY new.place;
