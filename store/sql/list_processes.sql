-- Purpose: what processes said of themselves last.
-- Arguments: $1 since when.
-- Result: reports by kind and name.
SELECT name, kind, reported_at, report FROM process_report WHERE reported_at >= $1 ORDER BY kind, name;
