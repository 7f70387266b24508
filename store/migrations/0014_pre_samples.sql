-- The project's figures over time, one row per step (domain/samples.py). The background process writes a row every 10 s,
-- adds rows up to longer steps, and deletes those that are older than their step is kept.
CREATE TABLE sample (
    step_s   int NOT NULL,
    at       double precision NOT NULL,                  -- start of the step, a multiple of it
    figures  jsonb NOT NULL,                             -- name -> mean over the step
    PRIMARY KEY (step_s, at)
);
