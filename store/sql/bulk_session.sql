-- Purpose: let this session read and write whole tables: the settings of the others are for rows found by key.
-- Arguments: none.
-- Result: none.
SET enable_seqscan = on;
SET enable_hashjoin = on;
SET enable_mergejoin = on;
SET work_mem = '128MB';
SET maintenance_work_mem = '256MB';
