-- Purpose: end instances as their hosts report them, each only from the state it is thought to be in; in key order.
-- Arguments: $1 instance_ids, $2 host_ids, $3 from_states, $4 to_states, $5 reported_at, $6 elapsed_s, $7 cpu_s, $8 exit_statuses,
--   $9 reasons, $10 turnaround_samples or nulls (arrays, the instance_ids distinct).
-- Result: one row per step made: instance_id, job_id, batch_id, shard, sent_at, due_at.
UPDATE instance SET
    state = report.to_state,
    reported_at = report.reported_at,
    elapsed_s = report.elapsed_s,
    cpu_s = report.cpu_s,
    exit_status = report.exit_status,
    reason = nullif(report.reason, ''),
    turnaround_sample = coalesce(report.turnaround_sample, instance.turnaround_sample)
FROM (
    SELECT *
    FROM unnest(
        $1::bigint[], $2::int[], $3::text[], $4::text[], $5::double precision[], $6::double precision[],
        $7::double precision[], $8::int[], $9::text[], $10::double precision[]
    ) AS report (
        instance_id, host_id, from_state, to_state, reported_at, elapsed_s, cpu_s, exit_status, reason, turnaround_sample
    )
    ORDER BY report.instance_id
) AS report
WHERE instance.instance_id = report.instance_id
    AND instance.host_id = report.host_id
    AND instance.state = report.from_state
RETURNING instance.instance_id, instance.job_id, instance.batch_id, instance.shard, instance.sent_at, instance.due_at;
