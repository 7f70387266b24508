-- Purpose: change a volunteer's name and preferences.
-- Arguments: $1 volunteer_id, $2 name, $3 beta, $4 no_gpu, $5 max_jobs, $6 app_ids, $7 no_cpu, $8 max_cpus, $9 preferred_at,
--   $10 whether to do so only if they were last changed at $11 (null = never).
-- Result: volunteer_id; no row when there is none, or the preferences are newer ones.
UPDATE volunteer SET
    name = $2, beta = $3, no_gpu = $4, max_jobs = $5, app_ids = $6, no_cpu = $7, max_cpus = $8, preferred_at = $9
WHERE volunteer_id = $1 AND (NOT $10::boolean OR preferred_at IS NOT DISTINCT FROM $11::double precision)
RETURNING volunteer_id;
