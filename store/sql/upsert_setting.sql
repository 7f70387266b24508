-- Purpose: change a setting.
-- Arguments: $1 key, $2 value (JSON).
-- Result: none.
INSERT INTO setting (key, value) VALUES ($1, $2::jsonb)
ON CONFLICT (key) DO UPDATE SET value = excluded.value;
