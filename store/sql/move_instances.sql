-- Purpose: move instances to a host from other records of the same computer and volunteer; they are locked. Only what a late
--   success could still complete, and never to a host that has had an instance of the job. The sample of a time-out stays
--   with the old host.
-- Arguments: $1 instance_ids, $2 from_host_ids, $3 to_host_ids, $4 whether only from a record that no client has
--   called as yet (arrays, the instance_ids distinct, one per job and host).
-- Result: instance_id and app_version_id of each that moved.
UPDATE instance SET
    host_id = claim.to_host_id,
    turnaround_sample = NULL,
    nth = (  -- so that a concurrent dispatch of the job to this volunteer violates the key and looks again
        SELECT max(sibling.nth) + 1
        FROM instance AS sibling
        WHERE sibling.job_id = instance.job_id AND sibling.volunteer_id = instance.volunteer_id
    )
FROM unnest($1::bigint[], $2::int[], $3::int[], $4::boolean[])
    AS claim (instance_id, from_host_id, to_host_id, unused_only)
JOIN host AS old ON old.host_id = claim.from_host_id
JOIN host AS new ON
    new.host_id = claim.to_host_id
    AND new.volunteer_id = old.volunteer_id
    AND new.host_cpid = old.host_cpid
    AND new.domain_name = old.domain_name
WHERE instance.instance_id = claim.instance_id
    AND instance.host_id = claim.from_host_id
    AND (old.rpc_seqno = 0 OR NOT claim.unused_only)
    AND instance.state IN ('in_progress', 'timed_out', 'aborted', 'failed')
    AND (
        SELECT count(*)  -- not EXISTS, which may be planned as a hash of all instances
        FROM instance AS sibling
        WHERE sibling.job_id = instance.job_id AND sibling.host_id = claim.to_host_id
    ) = 0
RETURNING instance.instance_id, instance.app_version_id;
