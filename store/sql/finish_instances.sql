-- Purpose: move every instance of some locked jobs of one batch to the history, with its standard error and its uploads.
-- Arguments: $1 job_ids, $2 batch_ended_at.
-- Result: instances, files and file_bytes that were moved.
WITH gone AS (
    DELETE FROM instance WHERE job_id = ANY($1::bigint[]) RETURNING *
),
gone_stderr AS (
    DELETE FROM instance_stderr WHERE instance_id IN (SELECT instance_id FROM gone)
),
gone_upload AS (
    DELETE FROM upload WHERE instance_id IN (SELECT instance_id FROM gone) RETURNING nbytes
),
moved AS (
    INSERT INTO finished_instance (
        instance_id, job_id, batch_id, job_class_id, state, retries, tight, created_at, host_id, volunteer_id,
        app_version_id, sent_at, due_at, timeout_at, est_runtime_s, because, reported_at, elapsed_s, cpu_s, exit_status,
        reason, turnaround_sample, copied_because, stderr, uploads, batch_ended_at
    )
    SELECT
        instance_id, job_id, batch_id, job_class_id, state, retries, tight, created_at, host_id, volunteer_id,
        app_version_id, sent_at, due_at, timeout_at, est_runtime_s, because, reported_at, elapsed_s, cpu_s, exit_status,
        reason, turnaround_sample, copied_because,
        -- both tables as they were before the deletes
        (SELECT stderr FROM instance_stderr WHERE instance_stderr.instance_id = gone.instance_id),
        (
            SELECT jsonb_agg(
                jsonb_build_object('name', name, 'nbytes', nbytes, 'md5', md5, 'completed_at', completed_at) ORDER BY name
            )
            FROM upload
            WHERE upload.instance_id = gone.instance_id
        ),
        $2
    FROM gone
    ORDER BY instance_id
)
SELECT
    (SELECT count(*) FROM gone) AS instances,
    count(*) AS files,
    coalesce(sum(nbytes), 0)::bigint AS file_bytes
FROM gone_upload;
