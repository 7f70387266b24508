-- Purpose: a volunteer's results that are over, the last one sent first. Those of the history are left out.
-- Arguments: $1 volunteer_id, $2 and $3 sent_at and instance_id behind which to go on, $4 how many are looked at, $5 host_id or
--   null for all, $6 states or null for all, $7 limit.
-- Result: instances with the name of their app.
SELECT
    own.instance_id, own.batch_id, own.host_id, own.state, own.sent_at, own.due_at, own.reported_at, own.elapsed_s, own.reason,
    app.name AS app_name
FROM (
    SELECT *
    FROM (
        SELECT *
        FROM instance
        WHERE instance.volunteer_id = $1
            AND instance.state NOT IN ('unsent', 'in_progress', 'cancelled')
            AND (instance.sent_at, instance.instance_id) < ($2, $3::bigint)
        ORDER BY instance.sent_at DESC, instance.instance_id DESC
        LIMIT $4
    ) AS looked_at
    WHERE ($5::int IS NULL OR looked_at.host_id = $5) AND ($6::text[] IS NULL OR looked_at.state = ANY($6))
    ORDER BY looked_at.sent_at DESC, looked_at.instance_id DESC
    LIMIT $7
) AS own
JOIN batch ON batch.batch_id = own.batch_id
JOIN app ON app.app_id = batch.app_id
ORDER BY own.sent_at DESC, own.instance_id DESC;
