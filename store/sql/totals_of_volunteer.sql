-- Purpose: all that a volunteer's computers ever did, and have now.
-- Arguments: $1 volunteer_id.
-- Result: one row of counts.
SELECT
    (SELECT count(*) FROM host WHERE host.volunteer_id = $1) AS hosts,
    (
        SELECT count(*)
        FROM host
        JOIN instance ON instance.host_id = host.host_id AND instance.state = 'in_progress'
        WHERE host.volunteer_id = $1
    ) AS in_progress,
    coalesce(sum(hav.n_valid), 0) AS valid, coalesce(sum(hav.n_error), 0) AS failed, coalesce(sum(hav.n_timeout), 0) AS late
FROM host
JOIN host_app_version AS hav ON hav.host_id = host.host_id
WHERE host.volunteer_id = $1;
