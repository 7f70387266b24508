-- Purpose: every limit.
-- Arguments: none.
-- Result: rows of work_limit by key.
SELECT scope, quantity, name, soft, hard FROM work_limit ORDER BY scope, quantity, name;
