-- Purpose: release a claimed batch.
-- Arguments: $1 batch_id.
-- Result: released.
SELECT pg_advisory_unlock(1297437781, ($1::bigint % 2147483647)::int) AS released;
