-- Forecasts of completion are kept, and scored when their batch ends.

-- Forecasts of a batch's completion. Of an active batch those of the last day, and of the time before its changes and
-- one in six hours; of one that ended its checkpoints, its changes and some in between, until its month is purged.
CREATE TABLE forecast (
    batch_id             bigint NOT NULL REFERENCES batch,
    made_at              double precision NOT NULL,
    trigger              text NOT NULL CHECK (trigger IN ('submission', 'validation', 'timer', 'manual')),
    q10_at               double precision NOT NULL,
    q50_at               double precision NOT NULL,
    q90_at               double precision NOT NULL,
    method               text NOT NULL CHECK (method IN ('complete', 'warm', 'cold', 'a_priori', 'fallback')),
    method_because       text NOT NULL,
    spread               double precision NOT NULL CHECK (spread > 0),
    completion_at        double precision NOT NULL,     -- C(B) from then on
    change               text NOT NULL CHECK (change IN ('first', 'held', 'moved', 'passed')),
    because              text NOT NULL,
    jobs_total           bigint NOT NULL,
    jobs_validated       bigint NOT NULL,
    jobs_failed          bigint NOT NULL,
    checkpoint_fraction  double precision,              -- the first forecast with so many of the jobs over
    at_risk              text,                          -- why a short deadline will hardly be kept
    flag                 text,                          -- why an operator should look at the batch
    terms                jsonb,
    holds                jsonb NOT NULL DEFAULT '[]',
    PRIMARY KEY (batch_id, made_at),
    CHECK (made_at <= q10_at AND q10_at <= q50_at AND q50_at <= q90_at AND q90_at < 'infinity'),
    CHECK (completion_at < 'infinity')
);

-- The last forecast of each active batch; of an ended one until it is scored.
CREATE TABLE batch_forecast (
    batch_id   bigint PRIMARY KEY REFERENCES batch,
    made_at    double precision NOT NULL,
    jobs_over  bigint NOT NULL                          -- validated and failed, when it was made
) WITH (fillfactor = 70);

-- Forecasts of ended batches against the fact.
CREATE TABLE forecast_score (
    batch_id                  bigint NOT NULL REFERENCES batch,
    progress_fraction         double precision NOT NULL,
    app_id                    int NOT NULL REFERENCES app,
    ended_at                  double precision NOT NULL,
    below_q10                 boolean NOT NULL,         -- the end lay below q10
    below_q50                 boolean NOT NULL,
    below_q90                 boolean NOT NULL,
    error_fraction            double precision NOT NULL,   -- (q50 - end) / makespan
    remaining_error_fraction  double precision NOT NULL,   -- (q50 - end) / what was left
    pinball                   double precision NOT NULL,   -- mean loss of the quantiles, in delay bounds
    needed_spread             double precision NOT NULL,   -- at which q90 would have been the end
    PRIMARY KEY (batch_id, progress_fraction)
);
CREATE INDEX forecast_score_by_app ON forecast_score (app_id, ended_at, batch_id);

-- How good an app's forecasts are, and the spread of the next ones.
CREATE TABLE app_forecast (
    app_id                           int PRIMARY KEY REFERENCES app,
    scored_at                        double precision NOT NULL,
    batches                          bigint NOT NULL,
    coverage_q10                     double precision NOT NULL CHECK (coverage_q10 BETWEEN 0 AND 1),
    coverage_q50                     double precision NOT NULL CHECK (coverage_q50 BETWEEN 0 AND 1),
    coverage_q90                     double precision NOT NULL CHECK (coverage_q90 BETWEEN 0 AND 1),
    median_error_fraction            double precision NOT NULL,
    median_remaining_error_fraction  double precision NOT NULL,
    bias_fraction                    double precision NOT NULL,
    pinball                          double precision NOT NULL,
    spread                           double precision NOT NULL CHECK (spread BETWEEN 0.5 AND 4),
    spread_because                   text NOT NULL
);

-- Forecasts change a row again and again.
ALTER TABLE batch SET (fillfactor = 80);
