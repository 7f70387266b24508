-- What operators stop: hosts and all hosts of a volunteer get at most `max_jobs` jobs (0: banned); an app, a queue or a batch
-- sends no new work (paused). `name` is the id, or the name of a queue.
CREATE TABLE restriction (
    kind      text NOT NULL CHECK (kind IN ('volunteer', 'host', 'app', 'queue', 'batch')),
    name      text NOT NULL,
    max_jobs  int NOT NULL DEFAULT 0 CHECK (max_jobs >= 0),  -- in progress per host
    why       text NOT NULL,
    set_by    text NOT NULL,
    set_at    double precision NOT NULL,
    PRIMARY KEY (kind, name)
);
-- Workers read the restrictions again when this changes, as they do for versions.
CREATE TRIGGER note_change_of_restriction AFTER INSERT OR UPDATE OR DELETE ON restriction
    FOR EACH STATEMENT EXECUTE FUNCTION note_app_change();
