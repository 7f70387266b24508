-- The code before it keeps to one instance per volunteer with the new index as well: it leaves nth at 0.
DROP INDEX instance_job_volunteer;
ALTER INDEX instance_job_volunteer_nth RENAME TO instance_job_volunteer;
