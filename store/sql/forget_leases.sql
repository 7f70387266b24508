-- Purpose: forget leases that ended long ago, and at once those that were of use: their hosts may be given one.
-- Arguments: $1 instant until which the others are forgotten, $2 host_ids of those of use.
-- Result: none.
DELETE FROM lease WHERE ended_at IS NOT NULL AND (ended_at < $1 OR host_id = ANY ($2::int[]));
