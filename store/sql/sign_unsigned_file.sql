-- Purpose: give a signature to a file that has none.
-- Arguments: $1 name, $2 signature.
-- Result: none.
UPDATE file SET signature = $2 WHERE name = $1 AND signature = '' AND $2 <> '';
