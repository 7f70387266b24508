-- Batches that a batch waits for: until all jobs of `after_ok` are valid, and until `after_any` have ended.
ALTER TABLE batch
    ADD COLUMN after_ok bigint[] NOT NULL DEFAULT '{}',
    ADD COLUMN after_any bigint[] NOT NULL DEFAULT '{}';
