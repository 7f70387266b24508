-- Labels that operators give to hosts, for queues bound to hosts.
ALTER TABLE host ADD COLUMN labels text[] NOT NULL DEFAULT '{}';

-- Usage of returned work by the day of its charge, without decay; whole months once the days are thinned out. The ids
-- refer to no table, because the history outlives accounts and submitters.
CREATE TABLE usage_history (
    unit           text NOT NULL CHECK (unit IN ('day', 'month')),
    starts_at      double precision NOT NULL,  -- 00:00 UTC
    submitter_id   int NOT NULL,
    account_id     int NOT NULL,
    instances      bigint NOT NULL,
    flop           double precision NOT NULL,
    cpu_s          double precision NOT NULL,
    memory_byte_s  double precision NOT NULL,
    gpu_s          double precision NOT NULL,
    used_su        double precision NOT NULL,
    PRIMARY KEY (unit, starts_at, submitter_id, account_id)
) WITH (fillfactor = 50);
