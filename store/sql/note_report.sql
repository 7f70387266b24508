-- Purpose: keep what a duty found.
-- Arguments: $1 name, $2 done_at, $3 report (JSON).
-- Result: none.
INSERT INTO duty (name, done_at, report) VALUES ($1, $2, $3::jsonb)
ON CONFLICT (name) DO UPDATE SET done_at = excluded.done_at, report = excluded.report;
