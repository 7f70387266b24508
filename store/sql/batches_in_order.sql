-- Purpose: the first active batches in their order.
-- Arguments: $1 limit.
-- Result: batch_id, in order.
SELECT batch_id FROM batch WHERE state = 'active' ORDER BY order_tier, order_key, batch_id LIMIT $1;
