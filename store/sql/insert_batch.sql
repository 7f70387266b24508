-- Purpose: a new batch.
-- Arguments: $1 submitter_id, $2 account_id, $3 app_id, $4 name, $5 qos, $6 state, $7 jobs_total, $8 created_at,
--   $9 order_tier, $10 order_key, $11 logical_start_at, $12 logical_end_at, $13 charged_s, $14 batch_flop,
--   $15 deadline_at, $16 user_priority, $17 queue, $18 level, $19 unpaid, $20 job_pe.
-- Result: batch_id.
INSERT INTO batch (
    submitter_id, account_id, app_id, name, qos, state, jobs_total, created_at, order_tier, order_key, logical_start_at,
    logical_end_at, charged_s, batch_flop, deadline_at, user_priority, queue, level,
    unpaid, job_pe
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)
RETURNING batch_id;
