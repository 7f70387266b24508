-- Purpose: the greatest id that instances had in this database. Unsent instances are given ids beyond it after a restore.
-- Arguments: none.
-- Result: instance_id.
SELECT greatest(
    (SELECT last_value FROM pg_sequences WHERE schemaname = current_schema() AND sequencename = 'instance_instance_id_seq'),
    (SELECT max(instance_id) FROM instance),
    0
) AS instance_id;
