-- Purpose: how large the database is, how long its oldest transaction is open, and its clients' sessions by state.
-- Arguments: $1 now.
-- Result: one row; states and sessions are arrays of the same length, the age is null while no transaction is open.
SELECT
    pg_database_size(current_database()) AS size_bytes,
    (
        SELECT greatest($1 - extract(epoch FROM min(activity.xact_start))::double precision, 0)
        FROM pg_stat_activity AS activity
        WHERE activity.datname = current_database() AND activity.backend_type = 'client backend'
            AND activity.pid <> pg_backend_pid()
    ) AS oldest_s,
    by_state.states,
    by_state.sessions
FROM (
    SELECT coalesce(array_agg(state ORDER BY state), '{}') AS states, coalesce(array_agg(n ORDER BY state), '{}') AS sessions
    FROM (
        SELECT coalesce(state, 'unknown') AS state, count(*) AS n
        FROM pg_stat_activity
        WHERE datname = current_database() AND backend_type = 'client backend'
        GROUP BY 1
    ) AS counted
) AS by_state;
