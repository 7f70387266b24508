-- Batches of which something may wait are marked, so that a refill finds the first of them whatever else is active.
-- Everything is marked at first; whoever looks takes the marks off that are no longer true.

ALTER TABLE batch ADD COLUMN waiting boolean NOT NULL DEFAULT true;
CREATE INDEX batch_waiting ON batch (order_tier, order_key, batch_id) WHERE state = 'active' AND waiting;

CREATE FUNCTION mark_waiting_batch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT (SELECT waiting FROM batch WHERE batch_id = NEW.batch_id FOR KEY SHARE) THEN
        UPDATE batch SET waiting = true WHERE batch_id = NEW.batch_id;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER mark_waiting_batch_of_new AFTER INSERT ON batch_count
FOR EACH ROW WHEN (NEW.unsent > 0) EXECUTE FUNCTION mark_waiting_batch();
CREATE TRIGGER mark_waiting_batch AFTER UPDATE ON batch_count
FOR EACH ROW WHEN (NEW.unsent > OLD.unsent) EXECUTE FUNCTION mark_waiting_batch();
