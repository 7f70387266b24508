-- Purpose: take the mark off those of some locked batches that have nothing unsent. A statement of its own behind the lock:
--   it sees what was added before.
-- Arguments: $1 batch_ids.
-- Result: none.
UPDATE batch SET waiting = false
WHERE batch_id = ANY($1::bigint[])
    AND waiting
    AND (SELECT coalesce(sum(batch_count.unsent), 0) FROM batch_count WHERE batch_count.batch_id = batch.batch_id) <= 0;
