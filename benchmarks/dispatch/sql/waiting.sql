-- Purpose: how much there is to do.
-- Arguments: none.
-- Result: unsent instances, by the counters.
SELECT coalesce(sum(unsent), 0)::bigint AS unsent FROM batch_count;
