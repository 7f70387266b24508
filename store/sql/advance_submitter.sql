-- Purpose: move a submitter's logical time.
-- Arguments: $1 submitter_id, $2 logical_at.
-- Result: none.
UPDATE submitter SET logical_at = $2 WHERE submitter_id = $1;
