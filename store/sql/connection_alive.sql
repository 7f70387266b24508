-- Purpose: whether the connection is alive; whoever gets no answer knows.
-- Arguments: none.
-- Result: alive, true.
SELECT true AS alive;
