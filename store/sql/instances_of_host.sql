-- Purpose: what a host was sent, the last one sent first. Those of the history are left out.
-- Arguments: $1 host_id, $2 volunteer_id of the host, $3 and $4 sent_at and instance_id behind which to go on, $5 and $6 those of
--   the last one that is looked at, $7 state or null for all, $8 limit.
-- Result: instances with the name of their app.
SELECT
    own.instance_id, own.job_id, own.batch_id, own.state, own.sent_at, own.due_at, own.reported_at, own.est_runtime_s,
    own.elapsed_s, own.tight, own.reason, app.name AS app_name
FROM (
    (
        SELECT *
        FROM instance
        WHERE instance.host_id = $1
            AND instance.state = 'in_progress'
            AND ($7::text IS NULL OR instance.state = $7)
            AND (instance.sent_at, instance.instance_id) < ($3, $4::bigint)
            AND (instance.sent_at, instance.instance_id) >= ($5, $6::bigint)
        ORDER BY instance.sent_at DESC, instance.instance_id DESC
        LIMIT $8
    )
    UNION ALL
    (
        SELECT *
        FROM instance
        WHERE instance.volunteer_id = $2
            AND instance.host_id = $1
            AND instance.state NOT IN ('unsent', 'in_progress', 'cancelled')
            AND ($7::text IS NULL OR instance.state = $7)
            AND (instance.sent_at, instance.instance_id) < ($3, $4::bigint)
            AND (instance.sent_at, instance.instance_id) >= ($5, $6::bigint)
        ORDER BY instance.sent_at DESC, instance.instance_id DESC
        LIMIT $8
    )
) AS own
JOIN batch ON batch.batch_id = own.batch_id
JOIN app ON app.app_id = batch.app_id
ORDER BY own.sent_at DESC, own.instance_id DESC
LIMIT $8;
