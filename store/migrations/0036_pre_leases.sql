-- Leases on hosts' futures for big jobs. Old nodes know none: a host that one of them serves is given what comes first.

CREATE TABLE lease (
    host_id         int PRIMARY KEY REFERENCES host,
    batch_id        bigint NOT NULL REFERENCES batch,
    processor_type  text NOT NULL,
    cores           double precision NOT NULL CHECK (cores > 0),
    start_at        double precision NOT NULL,
    limit_s         double precision NOT NULL CHECK (limit_s >= 0),
    made_at         double precision NOT NULL,
    expires_at      double precision NOT NULL,
    ended_at        double precision,
    because         text NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX lease_of_batch ON lease (batch_id) WHERE ended_at IS NULL;
