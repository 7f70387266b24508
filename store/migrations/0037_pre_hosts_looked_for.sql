-- What hosts are found by in lists: app versions they are slow with, by ranking. Nodes read this table; what writes to it
-- once in a while waits. The other index, what went wrong lately, is built by 0042.
CREATE INDEX host_percentile_slow ON host_percentile (x, host_id, app_version_id) WHERE x < 0.1;
