-- Purpose: waiting batches with jobs whose replicas need hosts alike.
-- Arguments: none.
-- Result: distinct rows (batch_id, app_id, hr_type).
SELECT DISTINCT batch.batch_id, batch.app_id, job_class.hr_type
FROM batch
JOIN job_class ON job_class.batch_id = batch.batch_id
WHERE batch.state = 'active' AND batch.waiting AND job_class.hr_type > 0
ORDER BY batch.batch_id, job_class.hr_type;
