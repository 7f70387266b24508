-- Purpose: let the statements of this session take as long as they need, and wait for so long at most for another
--   transaction. Nobody waits behind CREATE INDEX CONCURRENTLY but who changes the same table's shape.
-- Arguments: $1 milliseconds, as text.
-- Result: the settings.
SELECT set_config('lock_timeout', $1, false), set_config('statement_timeout', '0', false);
