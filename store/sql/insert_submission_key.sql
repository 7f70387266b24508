-- Purpose: what a submission is known by. Whoever has inserted the same and not yet committed is waited for.
-- Arguments: $1 owner, $2 key, $3 said, $4 batch_id, $5 created_at.
-- Result: batch_id; no row when the key is known.
INSERT INTO submission_key (owner, key, said, batch_id, created_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (owner, key) DO NOTHING
RETURNING batch_id;
