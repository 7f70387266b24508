-- Purpose: what everybody used by windows of time.
-- Arguments: none.
-- Result: rows of usage_window by key.
SELECT submitter_id, account_id, level, starts_at, length_s, flop
FROM usage_window
ORDER BY submitter_id, account_id, level, starts_at, length_s;
