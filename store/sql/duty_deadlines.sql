-- Purpose: by when each duty of background processes is to be done, as the process that does it reported last.
-- Arguments: $1 since when a process reported.
-- Result: name, deadline_at, by name; none of a duty that no process ever did.
SELECT duty ->> 'name' AS name, max((duty ->> 'deadline_at')::double precision) AS deadline_at
FROM process_report CROSS JOIN LATERAL jsonb_array_elements(report -> 'duties') AS duty
WHERE kind = 'background' AND reported_at >= $1 AND duty ->> 'deadline_at' IS NOT NULL
GROUP BY 1
ORDER BY 1;
