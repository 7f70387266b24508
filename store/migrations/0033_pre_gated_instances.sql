-- Whether an instance was given behind a gate: what counts against its host's share of urgent jobs.
ALTER TABLE instance ADD COLUMN gated boolean NOT NULL DEFAULT false;
