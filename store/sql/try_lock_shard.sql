-- Purpose: take a shard unless another worker has it; held until given up or the connection ends.
-- Arguments: $1 class, $2 shard.
-- Result: taken.
SELECT pg_try_advisory_lock($1, $2) AS taken;
