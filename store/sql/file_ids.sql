-- Purpose: the ids of registered files.
-- Arguments: $1 names.
-- Result: file_id and name, by name.
SELECT file_id, name FROM file WHERE name = ANY($1::text[]) ORDER BY name;
