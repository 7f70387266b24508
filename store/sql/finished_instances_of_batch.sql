-- Purpose: instances of a batch in some states that are in the history, retries first.
-- Arguments: $1 batch_id, $2 states, $3 minus the retries and $4 instance_id behind which to go on (-32768 and 0 for the start),
--   $5 limit.
-- Result: instances by retries (descending) and id.
SELECT
    one.instance_id, one.job_id, one.state, one.retries, false AS urgent, one.tight, one.created_at, one.host_id, one.sent_at,
    one.due_at, one.reported_at, one.reason
FROM unnest($2::text[]) AS wanted (state)
CROSS JOIN LATERAL (
    SELECT *
    FROM finished_instance
    WHERE batch_ended_at = (SELECT ended_at FROM batch WHERE batch_id = $1)
        AND finished_instance.batch_id = $1
        AND finished_instance.state = wanted.state
        AND (-retries, instance_id) > ($3::smallint, $4::bigint)
    ORDER BY -retries, instance_id
    LIMIT $5
) AS one
ORDER BY -one.retries, one.instance_id
LIMIT $5;
