-- The instances that the quorums of a batch's jobs need, whose total work is batch_flop. Null: of a batch submitted before.
ALTER TABLE batch ADD COLUMN quorum_total bigint;
