-- Takes the place of instance_job_volunteer (0097).
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS instance_job_volunteer_nth ON instance (job_id, volunteer_id, nth);
