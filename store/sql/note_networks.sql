-- Purpose: note from where hosts last drew on the quotas they share.
-- Arguments: $1 host_ids, $2 networks (arrays, the host_ids distinct).
-- Result: none.
UPDATE host SET network = moved.network
FROM (
    SELECT host.host_id, said.network
    FROM unnest($1::int[], $2::text[]) AS said (host_id, network)
    JOIN host ON host.host_id = said.host_id
    WHERE host.network <> said.network
    ORDER BY host.host_id
    FOR NO KEY UPDATE OF host
) AS moved
WHERE host.host_id = moved.host_id;
