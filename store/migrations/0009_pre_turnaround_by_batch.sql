-- Relaxed turnarounds are measured by the batch's median instead of the host's own runtime, tight ones by whether they
-- were met, and failures of long ago are forgiven. Relaxed sums that were gathered by the old measure fade in time.

ALTER TABLE app ADD COLUMN turnaround_s_per_flop double precision;
ALTER TABLE host_app_version ADD COLUMN tight_missed_n double precision NOT NULL DEFAULT 0;
ALTER TABLE host_app_version ADD COLUMN clean_since_at double precision;
