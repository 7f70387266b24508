-- Counters are kept in rows of whoever writes them instead of one per shard, and what the instances say is not written twice.

ALTER TABLE batch_count DROP COLUMN waiting;
ALTER TABLE batch_count RENAME COLUMN shard TO stripe;
ALTER TABLE job DROP COLUMN first_sent_at;
ALTER TABLE finished_job DROP COLUMN first_sent_at;
