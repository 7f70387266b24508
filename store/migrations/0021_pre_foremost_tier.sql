-- The smallest order_tier that a batch had when it was moved: with a smaller one now, it is ahead of its earlier places. Null: not moved, or not since a pause.
ALTER TABLE batch ADD COLUMN foremost_tier integer;
