-- Purpose: logical times, charges and usage that are no numbers or below nothing, and instances told before they were made.
-- Arguments: $1 how many at most.
-- Result: thing, because.
SELECT thing, because
FROM (
    SELECT
        'batch ' || batch_id AS thing,
        format(
            'its logical times are %s to %s, %s s were charged and %s s given back',
            logical_start_at, logical_end_at, charged_s, refunded_s
        ) AS because
    FROM batch
    WHERE NOT (
        logical_start_at > '-infinity' AND logical_start_at < 'infinity'
        AND logical_end_at >= logical_start_at AND logical_end_at < 'infinity'
        AND charged_s >= 0 AND charged_s < 'infinity' AND refunded_s > '-infinity'  -- below 0: it took more than was charged
        AND refunded_s <= charged_s + 1e-6 * (1 + charged_s)
        AND order_key > '-infinity' AND order_key < 'infinity'
    )
    UNION ALL
    SELECT 'submitter ' || submitter_id, format('its logical time is %s', logical_at)
    FROM submitter
    WHERE NOT (logical_at > '-infinity' AND logical_at < 'infinity')
    UNION ALL
    SELECT
        format('usage of submitter %s in account %s', submitter_id, account_id),
        format('%s flop, %s CPU s, %s byte s of memory, %s GPU s', flop, cpu_s, memory_byte_s, gpu_s)
    FROM usage
    WHERE NOT (
        flop >= 0 AND flop < 'infinity' AND cpu_s >= 0 AND cpu_s < 'infinity'
        AND memory_byte_s >= 0 AND memory_byte_s < 'infinity' AND gpu_s >= 0 AND gpu_s < 'infinity'
    )
    UNION ALL
    SELECT 'grant of account ' || account_id, format('%s service units used, %s reserved', used_su, reserved_su)
    FROM account_grant
    WHERE NOT (used_su >= 0 AND used_su < 'infinity' AND reserved_su >= 0 AND reserved_su < 'infinity')
    UNION ALL
    SELECT 'instance ' || instance_id, format('it was sent at %s, to be back at %s', sent_at, due_at)
    FROM instance
    WHERE sent_at IS NOT NULL AND NOT (sent_at > '-infinity' AND timeout_at < 'infinity')
) AS odd
ORDER BY thing
LIMIT $1;
