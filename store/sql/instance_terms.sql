-- Purpose: what is stored of an instance beside what people look at.
-- Arguments: $1 instance_id.
-- Result: the instance; no row when it is in the history, or unknown.
SELECT instance_id, job_id, batch_id, volunteer_id, app_version_id, timeout_at, turnaround_sample, copied_because
FROM instance
WHERE instance_id = $1;
