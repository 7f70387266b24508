-- A batch's instances in one state, retries first: those of the history. Those of the busy table are 0045.
-- A partitioned table's index cannot be built concurrently. Nothing is written to the history meanwhile: jobs of batches
-- that ended long ago are moved to it afterwards, and an output that becomes whole for one of them waits. Jobs are sent and
-- results taken as ever.
CREATE INDEX finished_instance_of_batch ON finished_instance (batch_id, state, (-retries), instance_id);
