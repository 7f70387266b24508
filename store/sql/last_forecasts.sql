-- Purpose: the last forecast of each of some batches.
-- Arguments: $1 batch_ids (array).
-- Result: rows of forecast, one at most for each batch.
SELECT last.*
FROM unnest($1::bigint[]) AS wanted (batch_id)
CROSS JOIN LATERAL (
    SELECT * FROM forecast WHERE forecast.batch_id = wanted.batch_id ORDER BY made_at DESC LIMIT 1
) AS last;
