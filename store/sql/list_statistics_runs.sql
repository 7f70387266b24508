-- Purpose: runs of the host statistics that were published, newest first.
-- Arguments: $1 limit.
-- Result: rows of host_statistics_run.
SELECT generation, is_full, started_at, seconds, parts
FROM host_statistics_run
ORDER BY generation DESC
LIMIT $1;
