-- Purpose: was something submitted with this key?
-- Arguments: $1 owner, $2 key, $3 since when.
-- Result: what was said, which batch that is, and the answer; or none.
SELECT said, batch_id, answer FROM submission_key WHERE owner = $1 AND key = $2 AND created_at >= $3;
