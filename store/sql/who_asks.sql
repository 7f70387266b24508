-- Purpose: the volunteers and hosts that requests come from, with what is known of the hosts' app versions.
-- Arguments: $1 authenticator_hashes, $2 host_ids (0 = the volunteer's newest host of the host_cpid), $3 host_cpids, $4 networks they come from
--   (null = where the host last drew on its shared quotas; arrays).
-- Result: one row per known account key with its position from 1: the volunteer (v_ columns) and the host; host_id null when
--   there is no such host or it is somebody else's;
--   the host's rows of host_app_version (versions); the network (asked_network), and the quotas of account and network.
SELECT
    asked.position, volunteer.volunteer_id AS v_volunteer_id, volunteer.name AS v_name, volunteer.email AS v_email,
    volunteer.created_at AS v_created_at, volunteer.cross_project_id AS v_cross_project_id, volunteer.beta AS v_beta,
    volunteer.no_gpu AS v_no_gpu, volunteer.max_jobs AS v_max_jobs, volunteer.app_ids AS v_app_ids,
    volunteer.no_cpu AS v_no_cpu, volunteer.max_cpus AS v_max_cpus, volunteer.preferred_at AS v_preferred_at, host.*,
    ARRAY(
        SELECT hav FROM host_app_version AS hav WHERE hav.host_id = host.host_id ORDER BY hav.app_version_id
    ) AS versions,
    coalesce(asked.network, host.network, '') AS asked_network,
    ARRAY(
        SELECT quota
        FROM shared_quota AS quota
        WHERE quota.name IN (
            'volunteer ' || volunteer.volunteer_id, 'address ' || coalesce(asked.network, host.network, '')
        )
    ) AS quotas
FROM unnest($1::bytea[], $2::bigint[], $3::text[], $4::text[]) WITH ORDINALITY AS asked (
    authenticator_hash, host_id, host_cpid, network, position
)
JOIN volunteer ON volunteer.authenticator_hash = asked.authenticator_hash
LEFT JOIN LATERAL (
    (
        SELECT *
        FROM host
        -- + 0: by the host's id, however many hosts the volunteer has
        WHERE host.host_id = asked.host_id AND host.volunteer_id + 0 = volunteer.volunteer_id
    )
    UNION ALL
    (
        SELECT *
        FROM host
        WHERE asked.host_id = 0
            AND asked.host_cpid <> ''
            AND host.volunteer_id = volunteer.volunteer_id
            AND host.host_cpid = asked.host_cpid
        ORDER BY host.host_id DESC
        LIMIT 1
    )
) AS host ON true
ORDER BY asked.position;
