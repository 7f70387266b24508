-- Copies of a batch's last jobs: how many a job has beyond what it needs, and what those raised its limit by.
ALTER TABLE job
    ADD COLUMN tail_copies smallint NOT NULL DEFAULT 0,
    ADD COLUMN more_instances smallint NOT NULL DEFAULT 0;
