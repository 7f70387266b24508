-- Purpose: write what was settled about locked jobs. A job that has ended keeps how and when it ended.
-- Arguments: $1 job_ids, $2 states, $3 settled_at, $4 canonical_instance_ids or nulls, $5 failures or nulls (arrays, the job_ids
--   distinct).
-- Result: none.
UPDATE job SET
    state = settled.state,
    canonical_instance_id = coalesce(job.canonical_instance_id, settled.canonical_instance_id),
    failure = coalesce(job.failure, settled.failure),
    ended_at = CASE WHEN settled.state = 'open' THEN NULL ELSE coalesce(job.ended_at, settled.settled_at) END
FROM unnest($1::bigint[], $2::text[], $3::double precision[], $4::bigint[], $5::text[])
    AS settled (job_id, state, settled_at, canonical_instance_id, failure)
WHERE job.job_id = settled.job_id;
