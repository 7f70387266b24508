-- Purpose: change a volunteer's name and wishes.
-- Arguments: $1 volunteer_id, $2 name, $3 beta, $4 no_gpu, $5 max_jobs, $6 app_ids.
-- Result: volunteer_id; no row when there is none.
UPDATE volunteer SET name = $2, beta = $3, no_gpu = $4, max_jobs = $5, app_ids = $6
WHERE volunteer_id = $1
RETURNING volunteer_id;
