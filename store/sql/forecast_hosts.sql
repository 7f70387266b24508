-- Purpose: how many hosts of a sample of pages are active, and how fast their processors are.
-- Arguments: $1 per cent of the pages, $2 the sample's seed, $3 since when an active host has called.
-- Result: one row: hosts, median_flop_per_s (NaN when there are none), processors (by the share of time they are
--   available).
SELECT
    count(*) AS hosts, coalesce(sum(ncpus * on_fraction * active_fraction), 0)::double precision AS processors,
    coalesce(percentile_cont(0.5) WITHIN GROUP (ORDER BY flop_per_s), 'NaN') AS median_flop_per_s
FROM host TABLESAMPLE SYSTEM ($1::real) REPEATABLE ($2::double precision)
WHERE last_rpc_at >= $3::double precision;
