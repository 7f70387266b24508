-- Instances up to this id count towards no limit of the job: it had failed and was retried after them. Null: never retried.
ALTER TABLE job ADD COLUMN retried_after bigint;
