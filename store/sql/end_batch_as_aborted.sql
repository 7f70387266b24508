-- Purpose: end an active batch; nothing of it is given out from here on.
-- Arguments: $1 batch_id, $2 ended_at.
-- Result: batch_id; no row where it was not active.
UPDATE batch SET state = 'aborted', ended_at = $2 WHERE batch_id = $1 AND state = 'active'
RETURNING batch_id;
