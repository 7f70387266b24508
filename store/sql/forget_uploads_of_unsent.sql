-- Purpose: remove the records of outputs of instances that no host was sent. Reads every unsent instance; run after a restore.
-- Arguments: none.
-- Result: one row for each record.
DELETE FROM upload
USING instance
WHERE instance.state = 'unsent' AND upload.instance_id = instance.instance_id
RETURNING upload.name;
