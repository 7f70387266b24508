-- What ordering policies need: queues and service levels of batches, memberships and permissions, usage, grants, limits,
-- and what the ordering remembers of every batch. What is active starts with nothing charged: its next ordering charges
-- all it has been sent. Old nodes leave held batches in their arrays, and do not note the batches they take in: those
-- are found by the ordering.

ALTER TABLE account ADD COLUMN permissions text[] NOT NULL DEFAULT '{}';
ALTER TABLE submitter ADD COLUMN permissions text[] NOT NULL DEFAULT '{}';
CREATE TABLE membership (
    submitter_id  int NOT NULL REFERENCES submitter,
    account_id    int NOT NULL REFERENCES account,
    shares        double precision NOT NULL DEFAULT 1 CHECK (shares >= 0 AND shares < 'infinity'),
    PRIMARY KEY (submitter_id, account_id)
);

ALTER TABLE batch ADD COLUMN queue text NOT NULL DEFAULT 'normal';
ALTER TABLE batch ADD COLUMN level text NOT NULL DEFAULT 'normal' CHECK (level IN ('expedite', 'normal', 'standby'));
ALTER TABLE batch ADD COLUMN hold text;
ALTER TABLE batch ADD COLUMN sent_most bigint;
CREATE INDEX batch_to_send ON batch (order_tier, order_key, batch_id) WHERE state = 'active' AND waiting AND hold IS NULL;

CREATE OR REPLACE VIEW batch_with_counts AS
SELECT
    batch.batch_id, batch.submitter_id, batch.account_id, batch.app_id, batch.name, batch.qos, batch.state,
    batch.jobs_total, batch.created_at, batch.order_tier, batch.order_key, batch.logical_start_at, batch.logical_end_at,
    batch.charged_s, batch.batch_flop, batch.deadline_at, batch.user_priority, batch.completion_at,
    batch.completion_q50_at, batch.completion_q90_at, batch.median_turnaround_s, batch.ended_at, total.*,
    batch.queue, batch.level, batch.hold, batch.sent_most
FROM batch
CROSS JOIN LATERAL (
    SELECT
        coalesce(sum(jobs_validated), 0)::bigint AS jobs_validated,
        coalesce(sum(jobs_failed), 0)::bigint AS jobs_failed,
        coalesce(sum(unsent), 0)::bigint AS unsent,
        coalesce(sum(in_progress), 0)::bigint AS in_progress,
        coalesce(sum(retries), 0)::bigint AS retries,
        coalesce(sum(sent), 0)::bigint AS sent,
        coalesce(sum(reported), 0)::bigint AS reported,
        coalesce(sum(deadlines_missed), 0)::bigint AS deadlines_missed,
        max(last_first_dispatch_at) AS last_first_dispatch_at
    FROM batch_count
    WHERE batch_count.batch_id = batch.batch_id
) AS total;

CREATE TABLE batch_order (
    batch_id       bigint PRIMARY KEY REFERENCES batch,
    waited_s       double precision NOT NULL DEFAULT 0,
    waiting_since  double precision,
    bypassed       int NOT NULL DEFAULT 0,
    sent           bigint NOT NULL DEFAULT 0,
    charged        bigint NOT NULL DEFAULT 0,
    used           bigint NOT NULL DEFAULT 0,
    charged_at     double precision NOT NULL DEFAULT 0,
    used_fraction  double precision NOT NULL DEFAULT 1 CHECK (used_fraction >= 0 AND used_fraction < 'infinity'),
    sampled        bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
CREATE TABLE batch_breakdown (
    batch_id     bigint PRIMARY KEY REFERENCES batch,
    computed_at  double precision NOT NULL,
    record       jsonb NOT NULL
) WITH (fillfactor = 50);
INSERT INTO batch_order (batch_id, waiting_since) SELECT batch_id, created_at FROM batch WHERE state = 'active';

CREATE TABLE usage (
    submitter_id   int NOT NULL REFERENCES submitter,
    account_id     int NOT NULL REFERENCES account,
    flop           double precision NOT NULL,
    cpu_s          double precision NOT NULL,
    memory_byte_s  double precision NOT NULL,
    gpu_s          double precision NOT NULL,
    at             double precision NOT NULL,
    accuracies     double precision[] NOT NULL DEFAULT '{}',
    standing       jsonb,
    PRIMARY KEY (submitter_id, account_id)
) WITH (fillfactor = 50);
CREATE TABLE usage_window (
    submitter_id  int NOT NULL REFERENCES submitter,
    account_id    int NOT NULL REFERENCES account,
    level         text NOT NULL CHECK (level IN ('expedite', 'normal', 'standby')),
    starts_at     double precision NOT NULL,
    length_s      double precision NOT NULL CHECK (length_s > 0),
    flop          double precision NOT NULL,
    PRIMARY KEY (submitter_id, account_id, level, starts_at, length_s)
) WITH (fillfactor = 70);
CREATE TABLE account_grant (
    account_id       int PRIMARY KEY REFERENCES account,
    granted_su       double precision NOT NULL CHECK (granted_su >= 0 AND granted_su < 'infinity'),
    period_start_at  double precision NOT NULL,
    period_s         double precision NOT NULL CHECK (period_s > 0 AND period_s < 'infinity'),
    used_su          double precision NOT NULL DEFAULT 0,
    reserved_su      double precision NOT NULL DEFAULT 0
);
CREATE TABLE work_limit (
    scope     text NOT NULL CHECK (scope IN ('submitter', 'account', 'app', 'queue')),
    quantity  text NOT NULL,
    name      text NOT NULL DEFAULT '',
    soft      double precision CHECK (soft >= 0),
    hard      double precision CHECK (hard >= 0),
    PRIMARY KEY (scope, quantity, name),
    CHECK (soft IS NOT NULL OR hard IS NOT NULL)
);
CREATE TABLE ordering (
    only_row     boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    serial       bigint NOT NULL,
    computed_at  double precision NOT NULL,
    reference    jsonb
);
INSERT INTO ordering (serial, computed_at) VALUES (0, 0);
