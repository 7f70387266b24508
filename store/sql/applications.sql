-- name: app_by_name
-- Purpose: return one app.
-- Arguments: $1 name.
-- Result: the app; no row when there is none.
SELECT app_id, name, user_friendly_name, beta, deprecated, adaptive_copies, one_per_host, one_per_volunteer
FROM app
WHERE name = $1;


-- name: current_cut_points
-- Purpose: return the cut points of the current generation.
-- Arguments: none.
-- Result: cut points by app and processor type.
SELECT
    cut.app_id, cut.processor_type, generation.computed_at, cut.n, cut.turnaround, cut.consecutive_valid, cut.score_mean,
    cut.tight_n, cut.tight_mean, cut.tight_sd, cut.retry_turnaround_s, cut.median_safe_runtime_s
FROM percentile_pointer AS pointer
JOIN percentile_generation AS generation USING (generation)
JOIN cut_points AS cut USING (generation)
ORDER BY cut.app_id, cut.processor_type;


-- name: file_ids
-- Purpose: return the ids of registered files.
-- Arguments: $1 names.
-- Result: file_id and name, by name.
SELECT file_id, name FROM file WHERE name = ANY($1::text[]) ORDER BY name;


-- name: failures_of_versions
-- Purpose: count the recent failures of all apps' versions. The history is left out.
-- Arguments: $1 since when, $2 number of latest failures to read.
-- Result: app_version_id, errors, invalid, timed_out, last_at, by app_version_id.
WITH failed AS MATERIALIZED (
    SELECT app_version_id, state, coalesce(reported_at, timeout_at) AS at
    FROM instance
    WHERE state IN ('failed', 'invalid', 'timed_out') AND coalesce(reported_at, timeout_at) >= $1
    ORDER BY coalesce(reported_at, timeout_at) DESC, instance_id DESC
    LIMIT $2
)
SELECT
    app_version_id,
    count(*) FILTER (WHERE state = 'failed') AS errors,
    count(*) FILTER (WHERE state = 'invalid') AS invalid,
    count(*) FILTER (WHERE state = 'timed_out') AS timed_out,
    max(at) AS last_at
FROM failed
GROUP BY app_version_id
ORDER BY app_version_id;


-- name: files_that_differ
-- Purpose: return names registered with other content.
-- Arguments: $1 names, $2 nbytes, $3 md5s (arrays).
-- Result: names, sorted.
SELECT file.name
FROM unnest($1::text[], $2::bigint[], $3::text[]) AS new (name, nbytes, md5)
JOIN file ON file.name = new.name
WHERE file.nbytes <> new.nbytes OR file.md5 <> new.md5
ORDER BY file.name;


-- name: inherit_statistics
-- Purpose: give a new app version its predecessor's statistics: the highest older version of the same app, platform
--   and plan class. At most 11 consecutive valid results are copied; each kind of sums is scaled down to 5 samples,
--   so that new evidence dominates. Events of the old version are not counted again.
-- Arguments: $1 app_version_id.
-- Result: none.
INSERT INTO host_app_version (
    host_id, app_version_id, consecutive_valid, quota_per_day, stats_at,
    speed_n, speed_sum, speed_sum_sq, tight_n, tight_sum, tight_sum_sq, relaxed_n, relaxed_sum, relaxed_sum_sq,
    log_n, log_sum, log_sum_sq, tight_missed_n, clean_since_at, inherited_from
)
SELECT
    hav.host_id, $1::int, least(hav.consecutive_valid, 11), hav.quota_per_day, hav.stats_at,
    hav.speed_n * kept.speed, hav.speed_sum * kept.speed, hav.speed_sum_sq * kept.speed,
    hav.tight_n * kept.tight, hav.tight_sum * kept.tight, hav.tight_sum_sq * kept.tight,
    hav.relaxed_n * kept.relaxed, hav.relaxed_sum * kept.relaxed, hav.relaxed_sum_sq * kept.relaxed,
    least(hav.log_n, 5), hav.log_sum * kept.log, hav.log_sum_sq * kept.log,
    hav.tight_missed_n * kept.tight, hav.clean_since_at, predecessor.app_version_id
FROM (
    SELECT old.app_version_id
    FROM app_version AS new
    JOIN app_version AS old USING (app_id, platform, plan_class)
    WHERE new.app_version_id = $1 AND old.version_num < new.version_num
    ORDER BY old.version_num DESC
    LIMIT 1
) AS predecessor
JOIN host_app_version AS hav USING (app_version_id)
CROSS JOIN LATERAL (
    SELECT
        least(1, 5 / nullif(hav.speed_n, 0)) AS speed,
        least(1, 5 / nullif(hav.tight_n, 0)) AS tight,
        least(1, 5 / nullif(hav.relaxed_n, 0)) AS relaxed,
        least(1, 5 / nullif(hav.log_n::double precision, 0)) AS log
) AS kept
ORDER BY hav.host_id
ON CONFLICT (host_id, app_version_id) DO NOTHING;


-- name: insert_app
-- Purpose: insert an app.
-- Arguments: $1 name, $2 user_friendly_name, $3 beta, $4 deprecated, $5 adaptive_copies,
--   $6 one_per_host, $7 one_per_volunteer.
-- Result: the app; no row when the name is taken.
INSERT INTO app (name, user_friendly_name, beta, deprecated, adaptive_copies, one_per_host, one_per_volunteer)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (name) DO NOTHING
RETURNING app_id, name, user_friendly_name, beta, deprecated, adaptive_copies, one_per_host, one_per_volunteer;


-- name: insert_app_version
-- Purpose: insert an app version.
-- Arguments: $1 app_id, $2 platform, $3 version_num, $4 plan_class, $5 api_version, $6 created_at,
--   $7 deprecated, $8 withdrawn or null.
-- Result: app_version_id; no row when it exists already.
INSERT INTO app_version (app_id, platform, version_num, plan_class, api_version, created_at, deprecated, withdrawn)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (app_id, platform, version_num, plan_class) DO NOTHING
RETURNING app_version_id;


-- name: insert_app_version_files
-- Purpose: insert the files of an app version, in order.
-- Arguments: $1 app_version_id, $2 file_ids, $3 main_program, $4 open_name, $5 copy_file, $6 executable (arrays, in order).
-- Result: none.
INSERT INTO app_version_file (app_version_id, position, file_id, main_program, open_name, copy_file, executable)
SELECT $1::int, new.position - 1, new.file_id, new.main_program, new.open_name, new.copy_file, new.executable
FROM unnest($2::bigint[], $3::boolean[], $4::text[], $5::boolean[], $6::boolean[]) WITH ORDINALITY
    AS new (file_id, main_program, open_name, copy_file, executable, position)
ORDER BY new.position;


-- name: insert_files
-- Purpose: register files; existing names are unchanged.
-- Arguments: $1 names, $2 nbytes, $3 md5s, $4 signatures (arrays, the names distinct), $5 created_at.
-- Result: none.
INSERT INTO file (name, nbytes, md5, signature, created_at)
SELECT new.name, new.nbytes, new.md5, new.signature, $5::double precision
FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[]) AS new (name, nbytes, md5, signature)
ORDER BY new.name
ON CONFLICT (name) DO NOTHING;


-- name: last_app_change
-- Purpose: return the last change of app versions, their files, plan classes and restrictions.
-- Arguments: none.
-- Result: last_change; no row if the table is empty.
SELECT last_change FROM app_changes;


-- name: list_app_version_files
-- Purpose: return the files of every app version.
-- Arguments: none.
-- Result: files by app version and position.
SELECT
    used.app_version_id, used.main_program, used.open_name, used.copy_file, used.executable,
    file.name, file.nbytes, file.md5, file.signature
FROM app_version_file AS used
JOIN file USING (file_id)
ORDER BY used.app_version_id, used.position;


-- name: list_app_versions
-- Purpose: return every app version.
-- Arguments: none.
-- Result: app versions by id.
SELECT app_version_id, app_id, platform, version_num, plan_class, api_version, deprecated, withdrawn, created_at
FROM app_version
ORDER BY app_version_id;


-- name: list_apps
-- Purpose: return every app.
-- Arguments: none.
-- Result: apps by id.
SELECT app_id, name, user_friendly_name, beta, deprecated, adaptive_copies, one_per_host, one_per_volunteer
FROM app
ORDER BY app_id;


-- name: list_plan_classes
-- Purpose: return every plan class.
-- Arguments: none.
-- Result: plan classes by name.
SELECT
    name, ncpus, gpu_type, gpu_count, min_gpu_ram_bytes, min_driver_version, min_host_ncpus, min_host_ram_bytes, os_pattern,
    cpu_speed_fraction, gpu_speed_fraction, needs, arguments, all_cpus
FROM plan_class
ORDER BY name;


-- name: sign_file
-- Purpose: replace a file's signature.
-- Arguments: $1 name, $2 signature.
-- Result: file_id; no row when there is none.
UPDATE file SET signature = $2 WHERE name = $1 RETURNING file_id;


-- name: sign_unsigned_file
-- Purpose: set the signature of an unsigned file.
-- Arguments: $1 name, $2 signature.
-- Result: none.
UPDATE file SET signature = $2 WHERE name = $1 AND signature = '' AND $2 <> '';


-- name: update_app
-- Purpose: change an app; its name stays, because files are named after it.
-- Arguments: $1 app_id, $2 user_friendly_name, $3 beta, $4 deprecated, $5 adaptive_copies,
--   $6 one_per_host, $7 one_per_volunteer.
-- Result: app_id; no row when there is none.
UPDATE app SET
    user_friendly_name = $2, beta = $3, deprecated = $4, adaptive_copies = $5, one_per_host = $6, one_per_volunteer = $7
WHERE app_id = $1
RETURNING app_id;


-- name: update_app_version
-- Purpose: offer, deprecate or withdraw an app version.
-- Arguments: $1 app_version_id, $2 deprecated, $3 withdrawn or null.
-- Result: app_version_id; no row when there is none.
UPDATE app_version SET deprecated = $2, withdrawn = $3 WHERE app_version_id = $1 RETURNING app_version_id;


-- name: in_progress_of_version
-- Purpose: count what withdrawing a version would end. Reads the instances in progress of all versions.
-- Arguments: $1 app_version_id.
-- Result: in_progress, hosts.
SELECT count(*) AS in_progress, count(DISTINCT host_id) AS hosts
FROM instance
WHERE state = 'in_progress' AND app_version_id = $1;


-- name: use_of_versions
-- Purpose: add up the hosts' counters for each version of an app. Reads the rows of the app's versions.
-- Arguments: $1 app_id, $2 since when a host counts as recent.
-- Result: app_version_id, hosts with a result or timeout, recent_hosts, valid, errors, timed_out, by app_version_id.
SELECT
    hav.app_version_id, count(*) AS hosts, count(*) FILTER (WHERE hav.stats_at >= $2) AS recent_hosts,
    sum(hav.n_valid)::bigint AS valid, sum(hav.n_error)::bigint AS errors, sum(hav.n_timeout)::bigint AS timed_out
FROM app_version
JOIN host_app_version AS hav USING (app_version_id)
WHERE app_version.app_id = $1 AND hav.n_valid + hav.n_error + hav.n_timeout > 0
GROUP BY hav.app_version_id
ORDER BY hav.app_version_id;


-- name: upsert_plan_class
-- Purpose: insert or replace a plan class.
-- Arguments: $1 name, $2 ncpus, $3 gpu_type or null, $4 gpu_count, $5 min_gpu_ram_bytes, $6 min_driver_version,
--   $7 min_host_ncpus, $8 min_host_ram_bytes, $9 os_pattern, $10 cpu_speed_fraction, $11 gpu_speed_fraction, $12 needs,
--   $13 arguments, $14 all_cpus.
-- Result: none.
INSERT INTO plan_class (
    name, ncpus, gpu_type, gpu_count, min_gpu_ram_bytes, min_driver_version, min_host_ncpus, min_host_ram_bytes, os_pattern,
    cpu_speed_fraction, gpu_speed_fraction, needs, arguments, all_cpus
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
ON CONFLICT (name) DO UPDATE SET
    ncpus = excluded.ncpus,
    gpu_type = excluded.gpu_type,
    gpu_count = excluded.gpu_count,
    min_gpu_ram_bytes = excluded.min_gpu_ram_bytes,
    min_driver_version = excluded.min_driver_version,
    min_host_ncpus = excluded.min_host_ncpus,
    min_host_ram_bytes = excluded.min_host_ram_bytes,
    os_pattern = excluded.os_pattern,
    cpu_speed_fraction = excluded.cpu_speed_fraction,
    gpu_speed_fraction = excluded.gpu_speed_fraction,
    needs = excluded.needs,
    arguments = excluded.arguments,
    all_cpus = excluded.all_cpus;
