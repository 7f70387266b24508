-- The host statistics: each generation's percentiles in a partition of their own, and a record of every run.
DROP TABLE host_percentile;
ALTER TABLE percentile_generation ADD COLUMN with_percentiles boolean NOT NULL DEFAULT false;
CREATE INDEX host_app_version_by_version ON host_app_version (app_version_id);

-- One partition per generation, made by a full run; nobody waits for its locks, since nothing but pages reads it.
CREATE TABLE host_percentile (
    generation      int NOT NULL,
    host_id         int NOT NULL,
    app_version_id  int NOT NULL,
    p               real,
    x               real,
    y               real,
    PRIMARY KEY (generation, host_id, app_version_id)
) PARTITION BY LIST (generation);

-- What each run found; `parts` is a JSON array with an object per (app, processor type).
CREATE TABLE host_statistics_run (
    generation  int PRIMARY KEY,
    is_full     boolean NOT NULL,
    started_at  double precision NOT NULL,
    seconds     double precision NOT NULL,
    parts       jsonb NOT NULL
);

-- The table a generation is written into: an index while it is filled would take longer than one made afterwards.
CREATE FUNCTION add_percentile_table(new_generation int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format(
        'CREATE TABLE %I (LIKE host_percentile, CHECK (generation = %L::int)) WITH (autovacuum_enabled = false)',
        'host_percentile_' || new_generation, new_generation
    );
    RETURN 'host_percentile_' || new_generation;
END $$;

CREATE FUNCTION attach_percentile_table(new_generation int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    partition text := 'host_percentile_' || new_generation;
BEGIN
    EXECUTE format('ALTER TABLE %I ADD PRIMARY KEY (generation, host_id, app_version_id)', partition);
    EXECUTE format('ALTER TABLE host_percentile ATTACH PARTITION %I FOR VALUES IN (%L)', partition, new_generation);
END $$;

-- Gives up when somebody reads its percentiles for longer than lock_timeout.
CREATE FUNCTION remove_generation(old_generation int) RETURNS void LANGUAGE plpgsql SET lock_timeout = '1s' AS $$
BEGIN
    EXECUTE format('DROP TABLE IF EXISTS %I', 'host_percentile_' || old_generation);
    DELETE FROM cut_points WHERE generation = old_generation;
    DELETE FROM percentile_generation WHERE generation = old_generation;
END $$;
