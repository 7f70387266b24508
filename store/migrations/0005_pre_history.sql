-- Jobs of batches that ended long ago are moved out of the busy tables, into one pair of partitions per month.

-- ---------------------------------------------------------------- history

-- Jobs of batches that ended long ago, with their instances: moved here out of the busy tables, so that those stay
-- small for ever. One pair of partitions per month (UTC) in which batches ended, made when the first job of that month
-- is moved, and dropped whole by a purge.
CREATE TABLE finished_job (
    job_id                 bigint NOT NULL,
    batch_id               bigint NOT NULL,
    job_class_id           bigint NOT NULL,
    state                  text NOT NULL CHECK (state IN ('valid', 'failed', 'cancelled')),
    command_line           text NOT NULL,
    inputs                 jsonb,
    copies                 int NOT NULL,
    hr_class               int NOT NULL,
    first_sent_at          double precision,
    canonical_instance_id  bigint,
    failure                text,
    ended_at               double precision NOT NULL,
    batch_ended_at         double precision NOT NULL,
    PRIMARY KEY (job_id, batch_ended_at)
) PARTITION BY RANGE (batch_ended_at);
CREATE INDEX finished_job_by_batch ON finished_job (batch_id, job_id);

-- With the standard error, and the uploads as a JSON array of name, nbytes, md5 and completed_at.
CREATE TABLE finished_instance (
    instance_id        bigint NOT NULL,
    job_id             bigint NOT NULL,
    batch_id           bigint NOT NULL,
    job_class_id       bigint NOT NULL,
    state              text NOT NULL CHECK (state NOT IN ('unsent', 'in_progress')),
    retries            smallint NOT NULL,
    tight              boolean NOT NULL,
    created_at         double precision NOT NULL,
    host_id            int,
    volunteer_id       int,
    app_version_id     int,
    sent_at            double precision,
    due_at             double precision,
    timeout_at         double precision,
    est_runtime_s      double precision,
    because            text,
    reported_at        double precision,
    elapsed_s          double precision,
    cpu_s              double precision,
    exit_status        int,
    reason             text,
    turnaround_sample  double precision,
    stderr             text,
    uploads            jsonb,
    batch_ended_at     double precision NOT NULL,
    PRIMARY KEY (instance_id, batch_ended_at)
) PARTITION BY RANGE (batch_ended_at);
CREATE INDEX finished_instance_by_job ON finished_instance (job_id);

-- What there is of each month, and when what there was before was purged.
CREATE TABLE finished_month (
    month       text PRIMARY KEY CHECK (month ~ '^[0-9]{4}-(0[1-9]|1[0-2])$'),
    starts_at   double precision NOT NULL,
    ends_at     double precision NOT NULL CHECK (ends_at > starts_at),
    jobs        bigint NOT NULL DEFAULT 0,
    instances   bigint NOT NULL DEFAULT 0,
    files       bigint NOT NULL DEFAULT 0,       -- uploaded outputs
    file_bytes  bigint NOT NULL DEFAULT 0,
    purged_at   double precision
);

-- Makes the partitions of a month unless they are there. Whoever calls it holds the lock of lock_history.sql.
CREATE FUNCTION add_finished_month(new_month text, new_starts_at double precision, new_ends_at double precision)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    parent text;
    partition text;
BEGIN
    INSERT INTO finished_month (month, starts_at, ends_at) VALUES (new_month, new_starts_at, new_ends_at)
    ON CONFLICT (month) DO NOTHING;
    FOREACH parent IN ARRAY ARRAY['finished_job', 'finished_instance'] LOOP
        partition := parent || '_' || replace(new_month, '-', '_');
        IF to_regclass(partition) IS NULL THEN
            EXECUTE format(
                'CREATE TABLE %I PARTITION OF %I FOR VALUES FROM (%L) TO (%L)',
                partition, parent, new_starts_at, new_ends_at
            );
        END IF;
    END LOOP;
END $$;

-- Drops the partitions of a month. Gives up when somebody reads them for longer than lock_timeout.
CREATE FUNCTION drop_finished_month(old_month text, dropped_at double precision)
RETURNS void LANGUAGE plpgsql SET lock_timeout = '5s' AS $$
DECLARE
    parent text;
BEGIN
    FOREACH parent IN ARRAY ARRAY['finished_job', 'finished_instance'] LOOP
        EXECUTE format('DROP TABLE IF EXISTS %I', parent || '_' || replace(old_month, '-', '_'));
    END LOOP;
    UPDATE finished_month SET jobs = 0, instances = 0, files = 0, file_bytes = 0, purged_at = dropped_at
    WHERE month = old_month;
END $$;
