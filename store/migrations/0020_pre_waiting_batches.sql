-- Batches of which something may wait are marked, so that a refill finds the first of them whatever else is active.
-- Everything is marked at first; whoever looks takes the marks off that are no longer true.

ALTER TABLE batch ADD COLUMN waiting boolean NOT NULL DEFAULT true;
CREATE INDEX batch_waiting ON batch (order_tier, order_key, batch_id) WHERE state = 'active' AND waiting;
