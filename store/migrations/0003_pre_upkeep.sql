-- Busy tables are vacuumed early, and batches with unsent instances are found by an index.

ALTER TABLE job_todo SET (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 10000
);
ALTER TABLE instance SET (
    fillfactor = 85, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 10000,
    autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0.02
);
ALTER TABLE batch_count SET (
    fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);
ALTER TABLE batch_count ADD COLUMN waiting boolean NOT NULL GENERATED ALWAYS AS (unsent > 0) STORED;
CREATE INDEX batch_count_waiting ON batch_count (batch_id) WHERE waiting;
