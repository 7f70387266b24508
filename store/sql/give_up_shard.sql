-- Purpose: give up a shard.
-- Arguments: $1 class, $2 shard.
-- Result: none.
SELECT pg_advisory_unlock($1, $2);
