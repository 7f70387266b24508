-- From here on every node reads templates, so that submissions write them.
ALTER TABLE job ADD CONSTRAINT job_with_template CHECK ((template_id IS NULL) = (number IS NULL));
