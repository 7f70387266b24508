-- Purpose: forget windows that no setting looks back to.
-- Arguments: $1 instant before which they ended.
-- Result: none.
DELETE FROM usage_window WHERE starts_at + length_s < $1;
