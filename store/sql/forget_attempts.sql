-- Purpose: signing in succeeded.
-- Arguments: $1 keys.
-- Result: none.
DELETE FROM sign_in_attempt WHERE key = ANY($1::text[]);
