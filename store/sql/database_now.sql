-- Purpose: the database's clock, to compare a node's with; the one query that asks the database what time it is.
-- Arguments: none.
-- Result: database_now, seconds since the epoch.
SELECT extract(epoch FROM clock_timestamp())::double precision AS database_now;
