-- Why an instance was made beyond what its job needs; null of all others.
ALTER TABLE instance ADD COLUMN copied_because text;
ALTER TABLE finished_instance ADD COLUMN copied_because text;
