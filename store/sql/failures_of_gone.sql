-- Purpose: what workers that are silent by now counted of requests that failed.
-- Arguments: $1 since when they spoke last, $2 until when, this not included.
-- Result: what each says failed, by its name.
SELECT report -> 'failed' AS failed
FROM process_report
WHERE kind = 'worker' AND reported_at >= $1 AND reported_at < $2 AND report ? 'failed'
ORDER BY name;
