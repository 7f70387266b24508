-- Purpose: when a batch was submitted.
-- Arguments: $1 batch_id.
-- Result: created_at.
SELECT created_at FROM batch WHERE batch_id = $1;
