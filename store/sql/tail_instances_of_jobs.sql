-- Purpose: the instances of jobs that a batch waits for, with what is known of the hosts that have them.
-- Arguments: $1 job_ids, $2 the present instant.
-- Result: instances by job and id; ln_ratio is the mean of the host's turnaround samples of such
--   due dates (tight or not), shrunk by two pseudo-samples of 0.
SELECT
    instance.instance_id, instance.job_id, instance.state, instance.tight, instance.host_id, instance.app_version_id,
    instance.sent_at, instance.est_runtime_s,
    coalesce(
        CASE WHEN instance.tight THEN hav.tight_sum ELSE hav.relaxed_sum END * kept.weight
        / (CASE WHEN instance.tight THEN hav.tight_n ELSE hav.relaxed_n END * kept.weight + 2),
        0
    ) AS ln_ratio
FROM instance
LEFT JOIN host_app_version AS hav ON hav.host_id = instance.host_id AND hav.app_version_id = instance.app_version_id
CROSS JOIN LATERAL (
    SELECT power(2, -least(greatest(0, $2::double precision - hav.stats_at) / 1209600, 1000)) AS weight  -- half-life: 14 days
) AS kept
WHERE instance.job_id = ANY($1::bigint[])
ORDER BY instance.job_id, instance.instance_id;
