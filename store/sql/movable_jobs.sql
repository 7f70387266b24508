-- Purpose: those of some locked jobs that nothing more will happen to: they are over and unmarked, no instance of them is
--   waiting or under way, and every due date has passed and was counted.
-- Arguments: $1 job_ids, $2 until when a due date must have passed, $3 name of the duty that counts due dates.
-- Result: job_id, ascending.
SELECT job.job_id
FROM job
WHERE job.job_id = ANY($1::bigint[])
    AND job.state <> 'open'
    AND NOT EXISTS (SELECT FROM job_todo WHERE job_todo.job_id = job.job_id)
    AND NOT EXISTS (
        SELECT FROM instance
        WHERE instance.job_id = job.job_id
            AND (
                instance.state IN ('unsent', 'in_progress')
                OR instance.due_at > least($2, coalesce((SELECT done_at FROM duty WHERE name = $3), 0))
            )
    )
ORDER BY job.job_id;
