-- name: account_name
-- Purpose: an account's name.
-- Arguments: $1 account_id.
-- Result: the name; no row when there is none.
SELECT name FROM account WHERE account_id = $1;


-- name: app_name
-- Purpose: an app's name.
-- Arguments: $1 app_id.
-- Result: the name; no row when there is none.
SELECT name FROM app WHERE app_id = $1;


-- name: batch_by_id
-- Purpose: one batch with its totals.
-- Arguments: $1 batch_id.
-- Result: the row of batch_with_counts; none when there is no such batch.
SELECT * FROM batch_with_counts WHERE batch_id = $1;


-- name: batches_with
-- Purpose: some batches with their totals.
-- Arguments: $1 batch_ids.
-- Result: rows of batch_with_counts by id.
SELECT * FROM batch_with_counts WHERE batch_id = ANY($1::bigint[]) ORDER BY batch_id;


-- name: classes_of_batch
-- Purpose: the job classes of a batch.
-- Arguments: $1 batch_id.
-- Result: job classes by id.
SELECT job_class_id, batch_id, fpops_est_flop, fpops_bound_flop, memory_bytes, disk_bytes, delay_bound_s, ncpus, quorum,
       max_errors, max_instances, hr_type, validator, tolerance, inputs, outputs
FROM job_class
WHERE batch_id = $1
ORDER BY job_class_id;


-- name: finished_instances_of_job
-- Purpose: the instances of a job of the history as people look at them.
-- Arguments: $1 job_id, $2 batch_id.
-- Result: instances by id, with their standard error and uploads (JSON).
SELECT
    instance_id, job_id, state, retries, tight, host_id, app_version_id, sent_at, due_at, reported_at, est_runtime_s,
    elapsed_s, exit_status, reason, because, stderr, uploads
FROM finished_instance
WHERE batch_ended_at = (SELECT ended_at FROM batch WHERE batch_id = $2) AND job_id = $1
ORDER BY instance_id;


-- name: finished_job_by_id
-- Purpose: one job of the history.
-- Arguments: $1 job_id.
-- Result: the job; no row when there is none.
SELECT
    finished_job.job_id, finished_job.batch_id, finished_job.job_class_id, finished_job.state, finished_job.failure,
    finished_job.canonical_instance_id,
    coalesce(replace(template.command_line, '{i}', finished_job.number::text), finished_job.command_line) AS command_line
FROM finished_job
LEFT JOIN job_template AS template ON template.template_id = finished_job.template_id
WHERE finished_job.job_id = $1;


-- name: host_by_id
-- Purpose: one host.
-- Arguments: $1 host_id.
-- Result: the host; no row when there is none.
SELECT * FROM host WHERE host_id = $1::bigint;


-- name: instances_of_job
-- Purpose: the instances of a job as people look at them.
-- Arguments: $1 job_id.
-- Result: instances by id, with their standard error and uploads (JSON).
SELECT
    instance.instance_id, instance.job_id, instance.state, instance.retries, instance.tight, instance.host_id,
    instance.app_version_id, instance.sent_at, instance.due_at, instance.reported_at, instance.est_runtime_s,
    instance.elapsed_s, instance.exit_status, instance.reason, instance.because, instance_stderr.stderr,
    (
        SELECT jsonb_agg(jsonb_build_object('name', name, 'nbytes', nbytes, 'md5', md5) ORDER BY name)
        FROM upload
        WHERE upload.instance_id = instance.instance_id
    ) AS uploads
FROM instance
LEFT JOIN instance_stderr USING (instance_id)
WHERE instance.job_id = $1
ORDER BY instance.instance_id;


-- name: job_by_id
-- Purpose: one job.
-- Arguments: $1 job_id.
-- Result: the job; no row when there is none.
SELECT
    job.job_id, job.batch_id, job.job_class_id, job.state, job.failure, job.canonical_instance_id,
    coalesce(replace(template.command_line, '{i}', job.number::text), job.command_line) AS command_line
FROM job
LEFT JOIN job_template AS template ON template.template_id = job.template_id
WHERE job.job_id = $1;


-- name: list_batches
-- Purpose: batches with their totals.
-- Arguments: $1 limit, $2 batch_id before which to go on, or null.
-- Result: rows of batch_with_counts, newest first.
SELECT *
FROM batch_with_counts
WHERE batch_id < coalesce($2::bigint, 9223372036854775807)
ORDER BY batch_id DESC
LIMIT $1;


-- name: list_finished_jobs
-- Purpose: jobs of a batch that are in the history.
-- Arguments: $1 batch_id, $2 limit, $3 job_id after which to go on, 0 for the start.
-- Result: jobs by id.
SELECT
    finished_job.job_id, finished_job.batch_id, finished_job.job_class_id, finished_job.state, finished_job.failure,
    finished_job.canonical_instance_id,
    coalesce(replace(template.command_line, '{i}', finished_job.number::text), finished_job.command_line) AS command_line
FROM finished_job
LEFT JOIN job_template AS template ON template.template_id = finished_job.template_id
WHERE
    finished_job.batch_ended_at = (SELECT ended_at FROM batch WHERE batch.batch_id = $1)
    AND finished_job.batch_id = $1 AND finished_job.job_id > $3
ORDER BY finished_job.job_id
LIMIT $2;


-- name: list_hosts
-- Purpose: hosts.
-- Arguments: $1 limit, $2 host_id after which to go on, 0 for the start.
-- Result: hosts by id.
SELECT * FROM host WHERE host_id > $2 ORDER BY host_id LIMIT $1;


-- name: list_jobs
-- Purpose: jobs of a batch.
-- Arguments: $1 batch_id, $2 limit, $3 job_id after which to go on, 0 for the start.
-- Result: jobs by id.
SELECT
    job.job_id, job.batch_id, job.job_class_id, job.state, job.failure, job.canonical_instance_id,
    coalesce(replace(template.command_line, '{i}', job.number::text), job.command_line) AS command_line
FROM job
LEFT JOIN job_template AS template ON template.template_id = job.template_id
WHERE job.batch_id = $1 AND job.job_id > $3
ORDER BY job.job_id
LIMIT $2;


-- name: submitter_name
-- Purpose: a submitter's name.
-- Arguments: $1 submitter_id.
-- Result: the name; no row when there is none.
SELECT name FROM submitter WHERE submitter_id = $1;


-- name: uploads_of_finished_instances
-- Purpose: what instances of a batch that are in the history brought.
-- Arguments: $1 batch_id, $2 instance_ids.
-- Result: instances that brought something, with their uploads (JSON).
SELECT instance_id, uploads
FROM finished_instance
WHERE
    batch_ended_at = (SELECT ended_at FROM batch WHERE batch.batch_id = $1)
    AND instance_id = ANY($2::bigint[])
    AND uploads IS NOT NULL;


-- name: uploads_of_instances
-- Purpose: what instances brought.
-- Arguments: $1 instance_ids.
-- Result: instances that brought something, with their uploads (JSON).
SELECT
    instance_id,
    jsonb_agg(jsonb_build_object('name', name, 'nbytes', nbytes, 'md5', md5) ORDER BY name) AS uploads
FROM upload
WHERE instance_id = ANY($1::bigint[])
GROUP BY instance_id;


-- name: versions_of_hosts
-- Purpose: what is known of hosts' app versions.
-- Arguments: $1 host_ids.
-- Result: rows of host_app_version by host and app version.
SELECT *
FROM host_app_version
WHERE host_id = ANY($1::int[])
ORDER BY host_id, app_version_id;


-- name: whose_batches
-- Purpose: whose some batches are, and of which app, by name.
-- Arguments: $1 batch_ids (array).
-- Result: batch_id, app, submitter, account, by id.
SELECT batch_id, app.name AS app, submitter.name AS submitter, account.name AS account
FROM batch
JOIN app USING (app_id)
JOIN submitter USING (submitter_id)
JOIN account ON account.account_id = batch.account_id
WHERE batch_id = ANY($1::bigint[])
ORDER BY batch_id;
