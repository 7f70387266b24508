-- The last change of app versions, their files and plan classes gets a name that no other has: a number that counts up comes
-- again after a fail-over or a restored backup that lacks the last ones. Nodes of before go by the number.

ALTER TABLE app_changes ADD COLUMN last_change uuid NOT NULL DEFAULT gen_random_uuid();
CREATE OR REPLACE FUNCTION note_app_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO app_changes AS old (changes, last_change) VALUES (0, gen_random_uuid())
    ON CONFLICT (only_row) DO UPDATE SET changes = old.changes + 1, last_change = excluded.last_change;
    RETURN NULL;
END $$;
