-- What volunteers see of their own: why a computer was given no job when it last wanted one. An index for their results is
-- built by 0050.
ALTER TABLE host
    ADD COLUMN refused_at double precision,
    ADD COLUMN refused jsonb;
