-- name: batches_in_order
-- Purpose: the first active batches in their order.
-- Arguments: $1 limit.
-- Result: batch_id, in order.
SELECT batch_id FROM batch WHERE state = 'active' ORDER BY order_tier, order_key, batch_id LIMIT $1;


-- name: drop_grant
-- Purpose: let an account's work be charged nobody's service units.
-- Arguments: $1 account_id.
-- Result: none.
DELETE FROM account_grant WHERE account_id = $1;


-- name: drop_limit
-- Purpose: a limit less.
-- Arguments: $1 scope, $2 quantity, $3 name, empty for everybody's.
-- Result: its scope; no row when there was none.
DELETE FROM work_limit WHERE scope = $1 AND quantity = $2 AND name = $3
RETURNING scope;


-- name: list_breakdowns
-- Purpose: why batches stand where they stand.
-- Arguments: $1 batch_ids.
-- Result: batch_id, record, by batch_id.
SELECT batch_id, record FROM batch_breakdown WHERE batch_id = ANY($1::bigint[]) ORDER BY batch_id;


-- name: list_grants
-- Purpose: the grants of accounts.
-- Arguments: none.
-- Result: rows of account_grant by account_id.
SELECT account_id, granted_su, period_start_at, period_s, used_su, reserved_su FROM account_grant ORDER BY account_id;


-- name: list_limits
-- Purpose: every limit.
-- Arguments: none.
-- Result: rows of work_limit by key.
SELECT scope, quantity, name, soft, hard FROM work_limit ORDER BY scope, quantity, name;


-- name: list_usage
-- Purpose: what everybody used, decayed.
-- Arguments: none.
-- Result: rows of usage by key.
SELECT submitter_id, account_id, flop, cpu_s, memory_byte_s, gpu_s, at, accuracies
FROM usage
ORDER BY submitter_id, account_id;


-- name: list_usage_windows
-- Purpose: what everybody used by windows of time.
-- Arguments: none.
-- Result: rows of usage_window by key.
SELECT submitter_id, account_id, level, starts_at, length_s, flop
FROM usage_window
ORDER BY submitter_id, account_id, level, starts_at, length_s;


-- name: places_of_batches
-- Purpose: where batches stand in the order of all active ones.
-- Arguments: $1 batch_ids.
-- Result: batch_id, place (1 = first), active (how many are ordered), by batch_id; no row for a batch that is over.
SELECT ordered.batch_id, ordered.place, ordered.active
FROM (
    SELECT
        batch_id,
        row_number() OVER (ORDER BY order_tier, order_key, batch_id) AS place,
        count(*) OVER () AS active
    FROM batch
    WHERE state = 'active'
) AS ordered
WHERE ordered.batch_id = ANY($1::bigint[])
ORDER BY ordered.batch_id;


-- name: put_grant
-- Purpose: give an account service units per period, instead of what it had; what it used stays used.
-- Arguments: $1 account_id, $2 granted_su, $3 period_start_at, $4 period_s.
-- Result: none.
INSERT INTO account_grant (account_id, granted_su, period_start_at, period_s) VALUES ($1, $2, $3, $4)
ON CONFLICT (account_id) DO UPDATE SET
    granted_su = excluded.granted_su, period_start_at = excluded.period_start_at, period_s = excluded.period_s;


-- name: put_limit
-- Purpose: a limit, instead of the one of the same scope, quantity and name.
-- Arguments: $1 scope, $2 quantity, $3 name, empty for everybody's, $4 soft or null, $5 hard or null.
-- Result: none.
INSERT INTO work_limit (scope, quantity, name, soft, hard) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (scope, quantity, name) DO UPDATE SET soft = excluded.soft, hard = excluded.hard;


-- name: set_account
-- Purpose: let another account be charged for an active batch; what was sent is charged to the account it was sent for.
-- Arguments: $1 batch_id, $2 account_id.
-- Result: batch_id; no row when there is no such batch, or something of it was sent.
UPDATE batch SET account_id = $2
WHERE batch_id = $1 AND ended_at IS NULL
    AND NOT EXISTS (SELECT FROM batch_count WHERE batch_count.batch_id = $1 AND sent <> 0)
RETURNING batch_id;


-- name: set_deadline
-- Purpose: change the deadline of an active batch that has one.
-- Arguments: $1 batch_id, $2 deadline_at.
-- Result: batch_id; no row when there is no such batch.
UPDATE batch SET deadline_at = $2
WHERE batch_id = $1 AND ended_at IS NULL AND deadline_at IS NOT NULL
RETURNING batch_id;


-- name: set_service
-- Purpose: change the service level and the queue of an active batch; null leaves one as it is.
-- Arguments: $1 batch_id, $2 level, $3 queue.
-- Result: batch_id; no row when there is no such active batch.
UPDATE batch SET level = coalesce($2, level), queue = coalesce($3, queue) WHERE batch_id = $1 AND ended_at IS NULL
RETURNING batch_id;


-- name: set_user_priority
-- Purpose: change the user priority of an active batch.
-- Arguments: $1 batch_id, $2 user_priority.
-- Result: batch_id; no row when there is no such active batch.
UPDATE batch SET user_priority = $2 WHERE batch_id = $1 AND ended_at IS NULL
RETURNING batch_id;
