-- Purpose: why batches stand where they stand.
-- Arguments: $1 batch_ids, $2 computed_at, $3 records as JSON (arrays).
-- Result: none.
INSERT INTO batch_breakdown (batch_id, computed_at, record)
SELECT *
FROM unnest($1::bigint[], $2::double precision[], $3::jsonb[]) AS made (batch_id, computed_at, record)
ORDER BY batch_id
ON CONFLICT (batch_id) DO UPDATE SET computed_at = excluded.computed_at, record = excluded.record;
