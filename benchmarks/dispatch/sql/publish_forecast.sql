-- Purpose: a batch's forecast, as the estimator would publish it.
-- Arguments: $1 batch_id, $2 completion_at.
-- Result: none.
UPDATE batch SET completion_at = $2::double precision WHERE batch_id = $1::bigint;
