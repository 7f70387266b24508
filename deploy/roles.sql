-- Creates least-privilege roles in an external PostgreSQL. Safe to repeat.
--   psql -d muster -f deploy/roles.sql             as a superuser, or as the database's owner with CREATEROLE
-- It creates three roles without login and grants their privileges in the current database:
--   muster_owner     owns every table: for `muster init`, `muster migrate` and `muster purge`
--   muster_service   reads and writes rows: for `muster up` and every other command
--   muster_reader    reads everything except passwords, tokens and sessions: for reports and interactive queries
-- Then create a login role for each use, and keep its password out of the URL (~/.pgpass, or PGPASSFILE):
--   CREATE ROLE muster_web LOGIN PASSWORD '…' IN ROLE muster_service;
-- Run it again after `muster migrate`, as the migrating role or as a superuser, to grant rights on new tables.
\set ON_ERROR_STOP on
BEGIN;

DO $$
DECLARE
    wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['muster_owner', 'muster_service', 'muster_reader'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted) THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', wanted);
        END IF;
    END LOOP;
END $$;

-- Revoke access of other roles; only the owner may create objects.
SELECT format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database()) \gexec
SELECT format('GRANT CONNECT ON DATABASE %I TO muster_owner, muster_service, muster_reader', current_database()) \gexec
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE, CREATE ON SCHEMA public TO muster_owner;
GRANT USAGE ON SCHEMA public TO muster_service, muster_reader;

-- Transfer existing objects to the owner.
SELECT format('ALTER %s public.%I OWNER TO muster_owner',
              CASE relkind WHEN 'v' THEN 'VIEW' WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, relname)
FROM pg_class c
WHERE relnamespace = 'public'::regnamespace
  AND relkind IN ('r', 'p', 'v', 'S')
  AND pg_get_userbyid(relowner) <> 'muster_owner'
  AND NOT EXISTS (  -- a sequence of a column goes with its table
      SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.classid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
        AND c.relkind = 'S')
ORDER BY relkind, relname \gexec
SELECT format('ALTER FUNCTION %s OWNER TO muster_owner', oid::regprocedure)
FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND pg_get_userbyid(proowner) <> 'muster_owner'
ORDER BY oid \gexec

GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO muster_service;
GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO muster_service;
REVOKE INSERT, UPDATE, DELETE ON schema_version FROM muster_service;
REVOKE UPDATE, DELETE ON act, setting_audit FROM muster_service;  -- the audit trail only grows
-- The service creates and drops partitions only through these functions, which run as the owner.
SELECT format('ALTER FUNCTION %s SECURITY DEFINER SET search_path = public, pg_temp', oid::regprocedure),
       format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', oid::regprocedure),
       format('GRANT EXECUTE ON FUNCTION %s TO muster_service', oid::regprocedure)
FROM pg_proc
WHERE pronamespace = 'public'::regnamespace
  AND proname IN ('add_percentile_table', 'attach_percentile_table', 'remove_generation', 'add_finished_month')
ORDER BY oid \gexec
GRANT SELECT ON ALL TABLES IN SCHEMA public TO muster_reader;
REVOKE SELECT ON person, volunteer, web_session, api_token, mail_code, subscription FROM muster_reader;
GRANT SELECT (person_id, name, role, submitter_id, active, created_at) ON person TO muster_reader;
GRANT SELECT (subscription_id, person_id, channel, kinds, project_wide, interval_s, created_at, paused) ON subscription TO muster_reader;
GRANT SELECT (volunteer_id, name, beta, no_gpu, max_jobs, app_ids, created_at, no_cpu, max_cpus, preferred_at) ON volunteer
    TO muster_reader;

-- Default privileges for objects that the owner creates later.
ALTER DEFAULT PRIVILEGES FOR ROLE muster_owner IN SCHEMA public
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO muster_service;
ALTER DEFAULT PRIVILEGES FOR ROLE muster_owner IN SCHEMA public GRANT USAGE, SELECT ON SEQUENCES TO muster_service;

COMMIT;
