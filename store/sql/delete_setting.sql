-- Purpose: take a setting's default back.
-- Arguments: $1 key.
-- Result: none.
DELETE FROM setting WHERE key = $1;
