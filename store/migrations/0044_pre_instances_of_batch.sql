-- A batch's instances in one state, retries first. Fresh ones that wait are found by instance_fresh. Retries are never below
-- 0; saying so keeps this index from plans for everything else.
CREATE INDEX instance_of_batch ON instance (batch_id, state, (-retries), instance_id)
WHERE (state <> 'unsent' OR urgent) AND retries >= 0;

CREATE INDEX finished_instance_of_batch ON finished_instance (batch_id, state, (-retries), instance_id);
