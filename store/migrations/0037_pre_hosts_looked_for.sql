-- What hosts are found by in lists: app versions they are slow with, by ranking, and what went wrong lately.
CREATE INDEX host_percentile_slow ON host_percentile (x, host_id, app_version_id) WHERE x < 0.1;

CREATE INDEX instance_failed ON instance (coalesce(reported_at, timeout_at), instance_id)
WHERE state IN ('failed', 'invalid', 'timed_out');
