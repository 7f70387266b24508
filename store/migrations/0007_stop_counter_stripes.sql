-- Counters are kept in rows of whoever writes them instead of one per shard, and what other rows say is not
-- written twice: a host is one volunteer's for ever, so that one index keeps a job from coming twice to either.

ALTER TABLE batch_count DROP COLUMN waiting;
ALTER TABLE batch_count RENAME COLUMN shard TO stripe;
ALTER TABLE job DROP COLUMN first_sent_at;
ALTER TABLE finished_job DROP COLUMN first_sent_at;

DROP INDEX instance_job_volunteer;
CREATE UNIQUE INDEX instance_job_volunteer ON instance (job_id, volunteer_id);
DROP INDEX instance_job_host;
