-- Purpose: every volunteer with the stored secrets.
-- Arguments: none.
-- Result: volunteers by id.
SELECT volunteer_id, email, name, authenticator_nonce, authenticator_hash, password_salt, password_hash, cross_project_id, beta,
       no_gpu, max_jobs, app_ids, created_at
FROM volunteer
ORDER BY volunteer_id;
