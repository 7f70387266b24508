-- Purpose: forget runs of the host statistics but the newest.
-- Arguments: $1 how many stay.
-- Result: none.
DELETE FROM host_statistics_run
WHERE generation <= (
    SELECT generation FROM host_statistics_run ORDER BY generation DESC OFFSET $1 LIMIT 1
);
