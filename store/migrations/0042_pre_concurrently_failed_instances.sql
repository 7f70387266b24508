-- What went wrong lately. Databases that had 0037 before 0042 was there have it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS instance_failed ON instance (coalesce(reported_at, timeout_at), instance_id)
WHERE state IN ('failed', 'invalid', 'timed_out');
