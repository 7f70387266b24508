ALTER TABLE finished_instance ADD COLUMN credit double precision;
