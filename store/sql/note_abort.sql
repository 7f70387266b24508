-- Purpose: remember that jobs of a batch have yet to be cancelled.
-- Arguments: $1 batch_id.
-- Result: none.
INSERT INTO abort_todo VALUES ($1) ON CONFLICT (batch_id) DO NOTHING;
