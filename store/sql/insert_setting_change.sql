-- Purpose: note who changed a setting, and why.
-- Arguments: $1 key, $2 from_value, $3 to_value (JSON, null = default), $4 changed_at, $5 changed_by, $6 why.
-- Result: none.
INSERT INTO setting_audit (key, from_value, to_value, changed_at, changed_by, why)
VALUES ($1, $2::jsonb, $3::jsonb, $4, $5, $6);
