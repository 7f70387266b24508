-- Nobody goes by the number of changes any more.

CREATE OR REPLACE FUNCTION note_app_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO app_changes DEFAULT VALUES
    ON CONFLICT (only_row) DO UPDATE SET last_change = excluded.last_change;
    RETURN NULL;
END $$;
ALTER TABLE app_changes DROP COLUMN changes;
