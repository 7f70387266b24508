-- Purpose: note that a batch is not forecast any more.
-- Arguments: $1 batch_id.
-- Result: batch_id; no row when that was noted already.
DELETE FROM batch_forecast WHERE batch_id = $1 RETURNING batch_id;
