-- Purpose: what all hosts that called lately can compute together, availability included.
-- Arguments: $1 instant since which a call counts.
-- Result: flop_per_s.
SELECT coalesce(sum(ncpus * flop_per_s * on_fraction * active_fraction), 0) AS flop_per_s
FROM host
WHERE last_rpc_at >= $1;
