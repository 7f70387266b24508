-- Purpose: keep what a process says of itself.
-- Arguments: $1 name, $2 kind, $3 reported_at, $4 report (JSON).
-- Result: none.
INSERT INTO process_report (name, kind, reported_at, report) VALUES ($1, $2, $3, $4::jsonb)
ON CONFLICT (name) DO UPDATE
SET kind = excluded.kind, reported_at = excluded.reported_at, report = excluded.report
WHERE process_report.reported_at <= excluded.reported_at;
