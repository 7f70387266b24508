-- Purpose: volunteers with the stored secrets.
-- Arguments: $1 limit or null for all, $2 volunteer_id after which to go on, 0 for the start.
-- Result: volunteers by id.
SELECT volunteer_id, email, name, authenticator_nonce, authenticator_hash, password_salt, password_hash, cross_project_id, beta,
       no_gpu, max_jobs, app_ids, no_cpu, max_cpus, preferred_at, created_at
FROM volunteer
WHERE volunteer_id > $2
ORDER BY volunteer_id
LIMIT $1;
