-- Purpose: the latest changes of settings.
-- Arguments: $1 limit, $2 audit_id before which to go on.
-- Result: changes, newest first.
SELECT audit_id, key, from_value, to_value, changed_at, changed_by, why
FROM setting_audit
WHERE audit_id < $2
ORDER BY audit_id DESC
LIMIT $1;
