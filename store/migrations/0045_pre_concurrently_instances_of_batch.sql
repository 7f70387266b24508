-- A batch's instances in one state, retries first. Fresh ones that wait are found by instance_fresh. Retries are never below
-- 0; saying so keeps this index from plans for everything else. Databases that had 0044 before 0045 was there have it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS instance_of_batch ON instance (batch_id, state, (-retries), instance_id)
WHERE (state <> 'unsent' OR urgent) AND retries >= 0;
