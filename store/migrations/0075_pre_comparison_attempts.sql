-- Attempts to compare a job's outputs are counted before they are made: a job that ends its process is not taken again at once.
ALTER TABLE job_todo
    ADD COLUMN attempts smallint NOT NULL DEFAULT 0,
    ADD COLUMN not_before double precision NOT NULL DEFAULT 0;
