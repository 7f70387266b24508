-- When a changed level, queue or user priority, or a lifted pause, takes effect. Forecasts count only what was sent since then.
-- Null: never.
ALTER TABLE batch ADD COLUMN moved_at double precision;
