-- The median of R_q over the hosts, by which a batch counts as late.
ALTER TABLE cut_points ADD COLUMN median_safe_runtime_s double precision;
