-- Purpose: claim a batch for a forecast, unless another connection has; held until released or the connection ends.
-- Arguments: $1 batch_id.
-- Result: claimed.
SELECT pg_try_advisory_lock(1297437781, ($1::bigint % 2147483647)::int) AS claimed;
