-- Purpose: the audit trail.
-- Arguments: $1 limit, $2 act_id before which to go on.
-- Result: acts, newest first.
SELECT * FROM act WHERE act_id < $2 ORDER BY act_id DESC LIMIT $1;
