-- Purpose: the changed settings.
-- Arguments: none.
-- Result: key and value (JSON), by key.
SELECT key, value FROM setting ORDER BY key;
