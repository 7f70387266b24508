-- What happens to the jobs in progress of a withdrawn version; null: not withdrawn. A withdrawn version is also deprecated,
-- so that older nodes send none of its jobs either.
ALTER TABLE app_version
    ADD COLUMN withdrawn text CHECK (withdrawn IN ('leave', 'abort')),
    ADD CONSTRAINT app_version_withdrawn_is_deprecated CHECK (withdrawn IS NULL OR deprecated);
