-- Purpose: replace a file's signature.
-- Arguments: $1 name, $2 signature.
-- Result: file_id; no row when there is none.
UPDATE file SET signature = $2 WHERE name = $1 RETURNING file_id;
