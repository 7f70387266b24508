-- Purpose: how far an outage is made up for.
-- Arguments: $1 outage_id, $2 moved (added), $3 moved_down_to or null (leave), $4 moved_down_to_id or null (leave), $5 over.
-- Result: none.
UPDATE outage SET
    moved = moved + $2::bigint,
    moved_down_to = coalesce($3, moved_down_to),
    moved_down_to_id = coalesce($4, moved_down_to_id),
    over = $5
WHERE outage_id = $1;
