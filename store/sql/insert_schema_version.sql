-- Purpose: note a migration.
-- Arguments: $1 version, $2 name, $3 applied_at.
-- Result: none.
INSERT INTO schema_version (version, name, applied_at) VALUES ($1, $2, $3);
