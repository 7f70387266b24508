-- Purpose: let the ordering know of a new batch, whose queue clock runs from now on.
-- Arguments: $1 batch_id, $2 now.
-- Result: none.
INSERT INTO batch_order (batch_id, waiting_since) VALUES ($1, $2);
