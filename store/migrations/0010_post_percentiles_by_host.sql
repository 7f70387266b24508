-- A host's percentiles are found by a block range index: each run writes them in the order of hosts, and a unique index
-- took as long to make as everything else a run does. Generations from before are read whole until they go.
ALTER TABLE host_percentile DROP CONSTRAINT host_percentile_pkey;

CREATE OR REPLACE FUNCTION attach_percentile_table(new_generation int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    partition text := 'host_percentile_' || new_generation;
BEGIN
    EXECUTE format('CREATE INDEX ON %I USING brin (host_id) WITH (pages_per_range = 16)', partition);
    EXECUTE format('ALTER TABLE host_percentile ATTACH PARTITION %I FOR VALUES IN (%L)', partition, new_generation);
END $$;
