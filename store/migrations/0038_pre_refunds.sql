-- What of a batch's charge in logical time was given back: what a second of it was charged for stays known.
ALTER TABLE batch ADD COLUMN refunded_s double precision NOT NULL DEFAULT 0;
