-- Purpose: move some locked jobs of one batch to the history.
-- Arguments: $1 job_ids, $2 batch_ended_at.
-- Result: none.
WITH gone AS (
    DELETE FROM job WHERE job_id = ANY($1::bigint[]) RETURNING *
)
INSERT INTO finished_job (
    job_id, batch_id, job_class_id, state, command_line, inputs, copies, hr_class, canonical_instance_id,
    failure, ended_at, batch_ended_at, template_id, number
)
SELECT
    job_id, batch_id, job_class_id, state, command_line, inputs, copies, hr_class, canonical_instance_id,
    failure, ended_at, $2, template_id, number
FROM gone
ORDER BY job_id;
