-- Marks a batch as waiting in the transaction that adds unsent instances. In a migration of its own: it locks the counters
-- and nothing else, for nodes that serve lock counters and batches in either order.

CREATE OR REPLACE FUNCTION mark_waiting_batch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT (SELECT waiting FROM batch WHERE batch_id = NEW.batch_id FOR KEY SHARE) THEN
        UPDATE batch SET waiting = true WHERE batch_id = NEW.batch_id;
    END IF;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER mark_waiting_batch_of_new AFTER INSERT ON batch_count
FOR EACH ROW WHEN (NEW.unsent > 0) EXECUTE FUNCTION mark_waiting_batch();
CREATE OR REPLACE TRIGGER mark_waiting_batch AFTER UPDATE ON batch_count
FOR EACH ROW WHEN (NEW.unsent > OLD.unsent) EXECUTE FUNCTION mark_waiting_batch();
