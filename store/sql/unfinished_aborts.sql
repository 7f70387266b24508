-- Purpose: aborted batches of which jobs may have yet to be cancelled.
-- Arguments: none.
-- Result: batch_id, ended_at; by batch_id.
SELECT batch_id, batch.ended_at
FROM abort_todo
JOIN batch USING (batch_id)
ORDER BY batch_id;
