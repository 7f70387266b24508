-- Purpose: forget what an ended batch's forecasts rested on.
-- Arguments: $1 batch_id.
-- Result: none.
UPDATE forecast SET terms = NULL, holds = '[]' WHERE batch_id = $1;
