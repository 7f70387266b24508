-- Purpose: let a statement of this transaction wait for a lock for so long at most; what comes behind it in the queue waits too.
-- Arguments: $1 milliseconds, as text.
-- Result: the setting.
SELECT set_config('lock_timeout', $1, true);
