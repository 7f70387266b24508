-- Purpose: the last ordering.
-- Arguments: none.
-- Result: one row of ordering.
SELECT serial, computed_at, reference FROM ordering;
