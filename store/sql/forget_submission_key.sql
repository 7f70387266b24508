-- Purpose: a key may be used anew when its time is over.
-- Arguments: $1 owner, $2 key, $3 before when.
-- Result: none.
DELETE FROM submission_key WHERE owner = $1 AND key = $2 AND created_at < $3;
