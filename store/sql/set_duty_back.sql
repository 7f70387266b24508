-- Purpose: a duty was done at an instant before the one that was noted while a clock was ahead.
-- Arguments: $1 name, $2 done_at.
-- Result: none.
UPDATE duty SET done_at = $2 WHERE name = $1;
