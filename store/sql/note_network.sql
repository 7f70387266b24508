-- Purpose: note from where a host last drew on the quotas it shares.
-- Arguments: $1 host_id, $2 network.
-- Result: none.
UPDATE host SET network = $2 WHERE host_id = $1 AND network <> $2;
