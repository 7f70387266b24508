-- How an app spreads the instances of a job over hosts and volunteers, and which of its volunteer's instances of the job an
-- instance is. All that were sent before this are the only ones of their volunteers.
ALTER TABLE app
    ADD COLUMN one_per_host boolean NOT NULL DEFAULT true,
    ADD COLUMN one_per_volunteer text NOT NULL DEFAULT 'quorum' CHECK (one_per_volunteer IN ('quorum', 'always', 'never'));
ALTER TABLE instance ADD COLUMN nth smallint NOT NULL DEFAULT 0;
