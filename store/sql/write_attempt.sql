-- Purpose: one more try.
-- Arguments: $1 key, $2 failures, $3 at.
-- Result: none.
UPDATE sign_in_attempt SET failures = $2, at = $3 WHERE key = $1;
