-- Purpose: what was answered to a submission.
-- Arguments: $1 owner, $2 key, $3 answer (JSON).
-- Result: none.
UPDATE submission_key SET answer = $3::jsonb WHERE owner = $1 AND key = $2;
