-- Purpose: begin to write an ordering, unless another has been written since the one it goes by.
-- Arguments: $1 serial it goes by, $2 now, $3 reference.
-- Result: the new serial; no row when it is too late.
UPDATE ordering SET serial = serial + 1, computed_at = $2, reference = $3::jsonb WHERE serial = $1
RETURNING serial;
