-- What volunteers see of their results. Databases that had 0061 before 0050 was there have it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS instance_of_volunteer ON instance (volunteer_id, sent_at, instance_id)
WHERE state NOT IN ('unsent', 'in_progress', 'cancelled');
