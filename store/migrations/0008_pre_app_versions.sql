-- What happens to the jobs in progress of a withdrawn version; null: not withdrawn. A withdrawn version is also deprecated,
-- so that older nodes send none of its jobs either.
ALTER TABLE app_version
    ADD COLUMN withdrawn text CHECK (withdrawn IN ('leave', 'abort')),
    ADD CONSTRAINT app_version_withdrawn_is_deprecated CHECK (withdrawn IS NULL OR deprecated);

-- What a plan class needs besides processors, the arguments it gives its programs, and whether a job uses all CPUs.
ALTER TABLE plan_class
    ADD COLUMN needs text NOT NULL DEFAULT '' CHECK (needs IN ('', 'docker', 'virtualbox')),
    ADD COLUMN arguments text NOT NULL DEFAULT '',
    ADD COLUMN all_cpus boolean NOT NULL DEFAULT false;
