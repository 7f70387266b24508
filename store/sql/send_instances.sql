-- Purpose: give instances to hosts; they were locked by lock_unsent. In the order of the unique key (job, volunteer,
--   nth), so that no two transactions wait for each other's.
-- Arguments: $1 instance_ids, $2 host_ids, $3 volunteer_ids, $4 app_version_ids, $5 sent_at, $6 due_at, $7 timeout_at,
--   $8 est_runtime_s, $9 tight, $10 because, $11 job_ids, $12 gated, $13 nths (arrays, the
--   instance_ids distinct).
-- Result: none.
UPDATE instance SET
    state = 'in_progress',
    host_id = assigned.host_id,
    volunteer_id = assigned.volunteer_id,
    app_version_id = assigned.app_version_id,
    sent_at = assigned.sent_at,
    due_at = assigned.due_at,
    timeout_at = assigned.timeout_at,
    est_runtime_s = assigned.est_runtime_s,
    tight = assigned.tight,
    because = assigned.because,
    gated = assigned.gated,
    nth = assigned.nth
FROM (
    SELECT *
    FROM unnest(
        $1::bigint[], $2::int[], $3::int[], $4::int[], $5::double precision[], $6::double precision[],
        $7::double precision[], $8::double precision[], $9::boolean[], $10::text[], $11::bigint[],
        $12::boolean[], $13::smallint[]
    ) AS assigned (
        instance_id, host_id, volunteer_id, app_version_id, sent_at, due_at, timeout_at, est_runtime_s, tight, because,
        job_id, gated, nth
    )
    ORDER BY assigned.job_id, assigned.volunteer_id, assigned.nth
) AS assigned
WHERE instance.instance_id = assigned.instance_id AND instance.state = 'unsent';
