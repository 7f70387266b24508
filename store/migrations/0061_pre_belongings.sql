-- What volunteers see of their own: why a computer was given no job when it last wanted one, and their results.
ALTER TABLE host
    ADD COLUMN refused_at double precision,
    ADD COLUMN refused jsonb;

CREATE INDEX instance_of_volunteer ON instance (volunteer_id, sent_at, instance_id)
WHERE state NOT IN ('unsent', 'in_progress', 'cancelled');
