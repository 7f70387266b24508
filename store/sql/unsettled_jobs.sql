-- Purpose: the jobs something happened to first, but those whose outputs are being compared.
-- Arguments: $1 limit, $2 now.
-- Result: the job's serial, state, class, copies and canonical instance, whether its batch was aborted, and its app's name; by
--   serial.
SELECT
    todo.serial, job.job_id, job.batch_id, job.job_class_id, job.state, job.copies, job.tail_copies,
    job.more_instances, job.canonical_instance_id,
    batch.state = 'aborted' AS batch_aborted, app.name AS app_name
FROM (
    SELECT job_id, serial
    FROM job_todo
    WHERE not_before <= $2
    ORDER BY serial
    LIMIT $1
) AS todo
JOIN job ON job.job_id = todo.job_id
JOIN batch ON batch.batch_id = job.batch_id
JOIN app ON app.app_id = batch.app_id
ORDER BY todo.serial;
