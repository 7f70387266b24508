-- Purpose: the latest changes of settings.
-- Arguments: $1 limit.
-- Result: changes, newest first.
SELECT key, from_value, to_value, changed_at, changed_by, why
FROM setting_audit
ORDER BY audit_id DESC
LIMIT $1;
