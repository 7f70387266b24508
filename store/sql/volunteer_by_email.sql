-- Purpose: one volunteer with the stored secrets.
-- Arguments: $1 email in lower case.
-- Result: the volunteer; no row when there is none.
SELECT volunteer_id, email, name, authenticator_nonce, authenticator_hash, password_salt, password_hash, cross_project_id, beta,
       no_gpu, max_jobs, app_ids, no_cpu, max_cpus, preferred_at, created_at
FROM volunteer
WHERE email = $1;
