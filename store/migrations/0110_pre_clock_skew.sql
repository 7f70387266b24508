-- By how much a host's clock was ahead of the project's when it last called.
ALTER TABLE host ADD COLUMN clock_skew_s double precision NOT NULL DEFAULT 0;
