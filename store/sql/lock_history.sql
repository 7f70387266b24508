-- Purpose: let nobody else move jobs to the history or purge months of it until the transaction ends.
-- Arguments: none.
-- Result: one row without meaning.
SELECT pg_advisory_xact_lock(1297437780, hashtext('history of jobs'));
