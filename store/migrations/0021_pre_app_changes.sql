-- How often app versions, their files and plan classes have changed: whoever has read them reads on only when they did.

CREATE TABLE app_changes (
    only_row  boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    changes   bigint NOT NULL
);
INSERT INTO app_changes (changes) VALUES (0);

CREATE FUNCTION note_app_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE app_changes SET changes = changes + 1;
    RETURN NULL;
END $$;
CREATE TRIGGER note_change_of_version AFTER INSERT OR UPDATE OR DELETE ON app_version
FOR EACH STATEMENT EXECUTE FUNCTION note_app_change();
CREATE TRIGGER note_change_of_version_file AFTER INSERT OR UPDATE OR DELETE ON app_version_file
FOR EACH STATEMENT EXECUTE FUNCTION note_app_change();
CREATE TRIGGER note_change_of_plan_class AFTER INSERT OR UPDATE OR DELETE ON plan_class
FOR EACH STATEMENT EXECUTE FUNCTION note_app_change();
CREATE TRIGGER note_change_of_signature AFTER UPDATE ON file
FOR EACH ROW WHEN (NEW.signature <> OLD.signature) EXECUTE FUNCTION note_app_change();
