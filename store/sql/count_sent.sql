-- Purpose: count instances as sent on a day, in the rows of their hosts' app versions, in key order.
-- Arguments: $1 host_ids, $2 app_version_ids, $3 days, $4 sent (arrays, keys distinct).
-- Result: host_id and app_version_id of the rows that were there.
UPDATE host_app_version SET
    day = greatest(host_app_version.day, delta.day),
    sent_today = CASE
        WHEN delta.day > host_app_version.day THEN delta.sent
        ELSE host_app_version.sent_today + delta.sent
    END
FROM (
    SELECT *
    FROM unnest($1::int[], $2::int[], $3::int[], $4::int[]) AS delta (host_id, app_version_id, day, sent)
    ORDER BY delta.host_id, delta.app_version_id
) AS delta
WHERE host_app_version.host_id = delta.host_id
    AND host_app_version.app_version_id + 0 = delta.app_version_id  -- + 0: by the host, never by the version
RETURNING host_app_version.host_id, host_app_version.app_version_id;
