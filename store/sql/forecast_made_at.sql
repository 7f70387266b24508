-- Purpose: when a batch was forecast last.
-- Arguments: $1 batch_id.
-- Result: made_at; no row when it never was.
SELECT made_at FROM batch_forecast WHERE batch_id = $1;
