-- name: delete_setting
-- Purpose: reset a setting to its default.
-- Arguments: $1 key.
-- Result: none.
DELETE FROM setting WHERE key = $1;


-- name: insert_setting_change
-- Purpose: record who changed a setting, and why.
-- Arguments: $1 key, $2 from_value, $3 to_value (JSON, null = default), $4 changed_at, $5 changed_by, $6 why.
-- Result: none.
INSERT INTO setting_audit (key, from_value, to_value, changed_at, changed_by, why)
VALUES ($1, $2::jsonb, $3::jsonb, $4, $5, $6);


-- name: list_setting_changes
-- Purpose: return the latest changes of settings.
-- Arguments: $1 limit, $2 audit_id before which to continue.
-- Result: changes, newest first.
SELECT audit_id, key, from_value, to_value, changed_at, changed_by, why
FROM setting_audit
WHERE audit_id < $2
ORDER BY audit_id DESC
LIMIT $1;


-- name: list_settings
-- Purpose: return the changed settings.
-- Arguments: none.
-- Result: key and value (JSON), by key.
SELECT key, value FROM setting ORDER BY key;


-- name: lock_setting
-- Purpose: return one changed setting, locked until the transaction ends.
-- Arguments: $1 key.
-- Result: value (JSON); no row when it has its default.
SELECT value FROM setting WHERE key = $1 FOR UPDATE;


-- name: project_pause
-- Purpose: return since when the project is paused, and who gave the latest reason.
-- Arguments: none.
-- Result: the last change of project.down, with the time when the pause began; no row when the project is not paused.
SELECT
    audit_id, key, from_value, to_value, changed_by, why,
    (
        SELECT max(changed_at) FROM setting_audit
        WHERE key = 'project.down' AND from_value IS DISTINCT FROM 'true'::jsonb
    ) AS changed_at
FROM setting_audit
WHERE key = 'project.down' AND EXISTS (SELECT 1 FROM setting WHERE key = 'project.down' AND value = 'true'::jsonb)
ORDER BY audit_id DESC
LIMIT 1;


-- name: upsert_setting
-- Purpose: change a setting.
-- Arguments: $1 key, $2 value (JSON).
-- Result: none.
INSERT INTO setting (key, value) VALUES ($1, $2::jsonb)
ON CONFLICT (key) DO UPDATE SET value = excluded.value;


-- name: lock_edits
-- Purpose: wait until no edit that depends on the present state is under way; lasts until the transaction ends.
-- Arguments: none.
-- Result: one row, to be ignored.
SELECT pg_advisory_xact_lock_shared(1297437780, hashtext('conditional edits'));


-- name: lock_edits_alone
-- Purpose: wait until no other edit is under way, for one that depends on the present state.
-- Arguments: none.
-- Result: one row, to be ignored.
SELECT pg_advisory_xact_lock(1297437780, hashtext('conditional edits'));


-- name: batches_resumed
-- Purpose: after a pause or an outage, note that active batches are sent again; reads all of them. The rate of the time
--   before contains the pause, so that it is no limit after an earlier move.
-- Arguments: $1 now, $2 only batches whose sending rate began at or after this time (null: all), $3 kind of the paused
--   work (null: the project), $4 its name.
-- Result: none.
UPDATE batch SET moved_at = greatest(batch.moved_at, $1::double precision), foremost_tier = NULL
FROM (
    SELECT batch_id
    FROM batch
    WHERE
        state = 'active'
        AND ($2::double precision IS NULL OR moved_at >= $2)
        AND ($3::text IS NULL OR $4::text = CASE $3
            WHEN 'batch' THEN batch_id::text
            WHEN 'app' THEN app_id::text
            WHEN 'queue' THEN queue
        END)
    ORDER BY batch_id
    FOR NO KEY UPDATE
) AS resumed
WHERE batch.batch_id = resumed.batch_id;
