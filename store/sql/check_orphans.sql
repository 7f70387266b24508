-- Purpose: rows whose owner is not there, or is another one's. Reads every job, instance and upload.
-- Arguments: $1 how many at most.
-- Result: thing, because.
SELECT thing, because
FROM (
    SELECT 'instance ' || instance.instance_id AS thing, format('there is no job %s', instance.job_id) AS because
    FROM instance
    WHERE NOT EXISTS (SELECT FROM job WHERE job.job_id = instance.job_id)
    UNION ALL
    SELECT 'instance ' || instance.instance_id, format('it is not of the batch, class or shard of its job %s', job.job_id)
    FROM instance
    JOIN job USING (job_id)
    WHERE instance.batch_id <> job.batch_id OR instance.job_class_id <> job.job_class_id
        OR instance.shard <> instance.job_id % 64
    UNION ALL
    SELECT 'instance ' || instance.instance_id, format('there is no host %s', instance.host_id)
    FROM instance
    WHERE instance.host_id IS NOT NULL AND NOT EXISTS (SELECT FROM host WHERE host.host_id = instance.host_id)
    UNION ALL
    SELECT 'instance ' || instance.instance_id, format('there is no app version %s', instance.app_version_id)
    FROM instance
    WHERE instance.app_version_id IS NOT NULL
        AND NOT EXISTS (SELECT FROM app_version WHERE app_version.app_version_id = instance.app_version_id)
    UNION ALL
    SELECT 'instance ' || finished_instance.instance_id, format('there is no job %s in the history', finished_instance.job_id)
    FROM finished_instance
    WHERE NOT EXISTS (SELECT FROM finished_job WHERE finished_job.job_id = finished_instance.job_id)
    UNION ALL
    SELECT 'upload ' || upload.name, format('there is no instance %s', upload.instance_id)
    FROM upload
    WHERE NOT EXISTS (SELECT FROM instance WHERE instance.instance_id = upload.instance_id)
    UNION ALL
    SELECT 'standard error of instance ' || instance_stderr.instance_id, 'there is no such instance'
    FROM instance_stderr
    WHERE NOT EXISTS (SELECT FROM instance WHERE instance.instance_id = instance_stderr.instance_id)
    UNION ALL
    SELECT 'mark of job ' || job_todo.job_id, 'there is no such job'
    FROM job_todo
    WHERE NOT EXISTS (SELECT FROM job WHERE job.job_id = job_todo.job_id)
    UNION ALL
    SELECT 'statistics of host ' || host_app_version.host_id, format('of app version %s: there is no such host', app_version_id)
    FROM host_app_version
    WHERE NOT EXISTS (SELECT FROM host WHERE host.host_id = host_app_version.host_id)
) AS orphan
ORDER BY thing
LIMIT $1;
