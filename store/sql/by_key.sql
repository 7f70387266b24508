-- Purpose: let the queries of this transaction find their rows by key, on a connection that may read whole tables.
-- Arguments: none.
-- Result: none.
SET LOCAL enable_seqscan = off;
SET LOCAL enable_hashjoin = off;
SET LOCAL enable_mergejoin = off;
