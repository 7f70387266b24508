-- Volunteers' preferences about CPUs, and when they changed any; who changed some before is told to clients from now on.
ALTER TABLE volunteer
    ADD COLUMN no_cpu boolean NOT NULL DEFAULT false,
    ADD COLUMN max_cpus int NOT NULL DEFAULT 0 CHECK (max_cpus >= 0),
    ADD COLUMN preferred_at double precision;

UPDATE volunteer SET preferred_at = created_at WHERE beta OR no_gpu OR max_jobs > 0 OR app_ids <> '{}';
