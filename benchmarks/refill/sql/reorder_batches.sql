-- Purpose: give every active batch another place in the order.
-- Arguments: none.
-- Result: none.
UPDATE batch SET order_key = (batch_id * 7919) % 10007 WHERE state = 'active';
