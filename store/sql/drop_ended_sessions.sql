-- Purpose: sessions that ran out are forgotten, some at a time.
-- Arguments: $1 now, $2 limit.
-- Result: none.
DELETE FROM web_session WHERE session_hash IN (
    SELECT session_hash FROM web_session WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED
);
