-- Purpose: make the unsent instances of jobs urgent: a sibling is back.
-- Arguments: $1 job_ids.
-- Result: none.
UPDATE instance SET urgent = true
WHERE job_id = ANY($1::bigint[]) AND state = 'unsent' AND urgent IS NOT TRUE;  -- not "NOT urgent": by job, not by way of instance_fresh
