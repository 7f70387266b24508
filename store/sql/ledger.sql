-- name: abort_lost
-- Purpose: end the instances in progress of detached hosts; lock_claimed has locked them.
-- Arguments: $1 host_ids, $2 instance_ids that are reported or have moved (arrays).
-- Result: instance_id, job_id, batch_id, host_id and app_version_id of each.
UPDATE instance SET state = 'aborted', reason = 'the host lost all its instances'
WHERE host_id = ANY($1::int[]) AND state = 'in_progress' AND NOT instance_id = ANY($2::bigint[])
RETURNING instance_id, job_id, batch_id, host_id, app_version_id;


-- name: forget_trickles
-- Purpose: delete expired trickle messages, up to a limit.
-- Arguments: $1 before which time, $2 limit.
-- Result: none.
DELETE FROM trickle WHERE (instance_id, trickle_id) IN (
    SELECT instance_id, trickle_id FROM trickle WHERE received_at < $1 ORDER BY received_at LIMIT $2 FOR UPDATE SKIP LOCKED
);


-- name: insert_host
-- Purpose: insert a host.
-- Arguments: $1 volunteer_id, $2 created_at, $3 rpc_seqno, $4 last_rpc_at, $5 host_cpid, $6 domain_name, $7 ncpus,
--   $8 flop_per_s, $9 ram_bytes, $10 disk_free_bytes, $11 on_fraction, $12 active_fraction, $13 gpu_active_fraction,
--   $14 platforms, $15 os_name, $16 os_version, $17 cpu_vendor, $18 cpu_model, $19 client_version,
--   $20 coprocessors (JSON), $21 clock_skew_s, $22 software.
-- Result: host_id.
INSERT INTO host (
    volunteer_id, created_at, rpc_seqno, last_rpc_at, host_cpid, domain_name, ncpus, flop_per_s, ram_bytes,
    disk_free_bytes, on_fraction, active_fraction, gpu_active_fraction, platforms, os_name, os_version, cpu_vendor,
    cpu_model, client_version, coprocessors, clock_skew_s, software
)
VALUES (
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20::jsonb, $21, $22
)
RETURNING host_id;


-- name: instances_reported
-- Purpose: return reported instances, with their uploads (JSON) and their computers.
-- Arguments: $1 instance_ids.
-- Result: sent instances by id.
SELECT
    instance.instance_id, instance.job_id, instance.batch_id, instance.job_class_id, instance.app_version_id,
    instance.host_id, instance.volunteer_id, instance.sent_at, instance.due_at, instance.est_runtime_s, instance.tight,
    instance.gated,
    app.name AS app_name, job.state <> 'open' AS no_longer_needed,
    coalesce(batch.median_turnaround_s, app.turnaround_s_per_flop * job_class.fpops_est_flop) AS median_turnaround_s,
    instance.state, instance.turnaround_sample, instance.timeout_at, instance.reported_at, job_class.fpops_est_flop,
    job_class.ncpus, job_class.outputs,
    (
        SELECT jsonb_agg(jsonb_build_object('name', name, 'nbytes', nbytes, 'md5', md5) ORDER BY name)
        FROM upload
        WHERE upload.instance_id = instance.instance_id
    ) AS uploads,
    host.host_cpid, host.domain_name
FROM instance
JOIN host ON host.host_id = instance.host_id
JOIN job ON job.job_id = instance.job_id
JOIN job_class ON job_class.job_class_id = instance.job_class_id
JOIN batch ON batch.batch_id = instance.batch_id
JOIN app ON app.app_id = batch.app_id
WHERE instance.instance_id = ANY($1::bigint[]) AND instance.host_id IS NOT NULL
ORDER BY instance.instance_id;


-- name: keep_trickles
-- Purpose: store trickle messages, up to a limit per instance; stored ones are unchanged.
-- Arguments: $1 instance_ids, $2 sent_ats, $3 digests, $4 varieties, $5 texts (arrays, one entry per message, in order),
--   $6 received_at, $7 most of an instance.
-- Result: too_many, the number of messages that there was no room for.
WITH said AS (
    SELECT DISTINCT ON (instance_id, sent_at, said) *
    FROM unnest($1::bigint[], $2::double precision[], $3::bytea[], $4::text[], $5::text[])
        WITH ORDINALITY AS listed (instance_id, sent_at, said, variety, text, place)
    ORDER BY instance_id, sent_at, said, place
),
fresh AS (
    SELECT
        said.*,
        (SELECT count(*) FROM trickle WHERE trickle.instance_id = said.instance_id)
            + row_number() OVER (PARTITION BY said.instance_id ORDER BY said.place) AS number
    FROM said
    WHERE NOT EXISTS (
        SELECT FROM trickle
        WHERE trickle.instance_id = said.instance_id AND trickle.sent_at = said.sent_at AND trickle.said = said.said
    )
),
kept AS (
    INSERT INTO trickle (instance_id, sent_at, said, received_at, variety, text)
    SELECT instance_id, sent_at, said, $6, variety, text FROM fresh WHERE number <= $7 ORDER BY place
    ON CONFLICT (instance_id, sent_at, said) DO NOTHING
)
SELECT count(*) AS too_many FROM fresh WHERE number > $7;


-- name: lock_claimed
-- Purpose: lock hosts, then their reported and claimed instances and those that detached hosts lose, as write_group does
--   and in the same order as transactions that settle their jobs.
-- Arguments: $1 host_ids, $2 instance_ids, $3 detached host_ids (arrays).
-- Result: instance_id, ascending.
WITH hosts AS MATERIALIZED (
    SELECT host_id FROM host WHERE host_id = ANY($1::int[]) ORDER BY host_id FOR NO KEY UPDATE
)
SELECT instance_id
FROM instance
WHERE instance_id = ANY(ARRAY(
    SELECT unnest($2::bigint[])
    UNION ALL
    SELECT instance_id FROM instance WHERE host_id = ANY($3::int[]) AND state = 'in_progress'
))
    AND (SELECT count(*) FROM hosts) >= 0  -- after them
ORDER BY instance_id
FOR UPDATE;


-- name: move_instances
-- Purpose: move instances to a host from other records of the same computer and volunteer; they are locked. Only
--   instances that a late success could still complete, and never to a host that has had an instance of the job. The
--   sample of a time-out stays with the old host.
-- Arguments: $1 instance_ids, $2 from_host_ids, $3 to_host_ids, $4 whether only from a record that no client has
--   called as yet (arrays, the instance_ids distinct, one per job and host).
-- Result: instance_id and app_version_id of each that moved.
UPDATE instance SET
    host_id = claim.to_host_id,
    turnaround_sample = NULL,
    nth = (  -- so that a concurrent dispatch of the job to this volunteer violates the key and is retried
        SELECT max(sibling.nth) + 1
        FROM instance AS sibling
        WHERE sibling.job_id = instance.job_id AND sibling.volunteer_id = instance.volunteer_id
    )
FROM unnest($1::bigint[], $2::int[], $3::int[], $4::boolean[])
    AS claim (instance_id, from_host_id, to_host_id, unused_only)
JOIN host AS old ON old.host_id = claim.from_host_id
JOIN host AS new ON
    new.host_id = claim.to_host_id
    AND new.volunteer_id = old.volunteer_id
    AND new.host_cpid = old.host_cpid
    AND new.domain_name = old.domain_name
WHERE instance.instance_id = claim.instance_id
    AND instance.host_id = claim.from_host_id
    AND (old.rpc_seqno = 0 OR NOT claim.unused_only)
    AND instance.state IN ('in_progress', 'timed_out', 'aborted', 'failed')
    AND (
        SELECT count(*)  -- not EXISTS, which may be planned as a hash of all instances
        FROM instance AS sibling
        WHERE sibling.job_id = instance.job_id AND sibling.host_id = claim.to_host_id
    ) = 0
RETURNING instance.instance_id, instance.app_version_id;


-- name: sent_jobs
-- Purpose: return what a reply needs to send instances again.
-- Arguments: $1 instance_ids.
-- Result: instance_id, command_line, inputs (JSON or null), by id.
SELECT
    instance.instance_id,
    coalesce(replace(template.command_line, '{i}', job.number::text), job.command_line) AS command_line,
    coalesce(template.inputs, job.inputs) AS inputs
FROM instance
JOIN job ON job.job_id = instance.job_id
LEFT JOIN job_template AS template ON template.template_id = job.template_id
WHERE instance.instance_id = ANY($1::bigint[])
ORDER BY instance.instance_id;


-- name: trickles_of_instance
-- Purpose: return the trickle messages of an instance, in order of arrival.
-- Arguments: $1 instance_id, $2 after which trickle_id, $3 limit.
-- Result: trickle_id, instance_id, sent_at, received_at, variety, text.
SELECT trickle_id, instance_id, sent_at, received_at, variety, text
FROM trickle
WHERE instance_id = $1 AND trickle_id > $2
ORDER BY trickle_id
LIMIT $3;


-- name: who_asks
-- Purpose: return the volunteers and hosts behind requests, with the hosts' statistics per app version and their instances
--   in progress.
-- Arguments: $1 authenticator_hashes, $2 host_ids (0 = the volunteer's newest host of the host_cpid), $3 host_cpids, $4 networks they come from
--   (null = where the host last drew on its shared quotas; arrays).
-- Result: one row per known account key with its position from 1: the volunteer (v_ columns) and the host; host_id null when
--   there is no such host or it is another volunteer's;
--   the host's rows of host_app_version (versions); its instances in progress (held) by id, with the data to check a report,
--   including uploads (JSON): records of the columns store/ledger.py HELD; the network (asked_network), and the quotas of
--   account and network; the credit of host and volunteer, and the volunteer's team (each null: none).
SELECT
    asked.position, volunteer.volunteer_id AS v_volunteer_id, volunteer.name AS v_name, volunteer.email AS v_email,
    volunteer.created_at AS v_created_at, volunteer.cross_project_id AS v_cross_project_id, volunteer.beta AS v_beta,
    volunteer.no_gpu AS v_no_gpu, volunteer.max_jobs AS v_max_jobs, volunteer.app_ids AS v_app_ids,
    volunteer.no_cpu AS v_no_cpu, volunteer.max_cpus AS v_max_cpus, volunteer.preferred_at AS v_preferred_at, host.*,
    ARRAY(
        SELECT hav FROM host_app_version AS hav WHERE hav.host_id = host.host_id ORDER BY hav.app_version_id
    ) AS versions,
    ARRAY(
        SELECT ROW(
            instance.instance_id, instance.job_id, instance.batch_id, instance.job_class_id, instance.app_version_id,
            instance.host_id, instance.volunteer_id, instance.sent_at, instance.due_at, instance.est_runtime_s,
            instance.tight, instance.gated,
            app.name, job.state <> 'open',
            coalesce(batch.median_turnaround_s, app.turnaround_s_per_flop * job_class.fpops_est_flop),
            instance.state, instance.turnaround_sample, instance.timeout_at, instance.reported_at, job_class.fpops_est_flop,
            job_class.ncpus, job_class.outputs,
            (
                SELECT jsonb_agg(jsonb_build_object('name', name, 'nbytes', nbytes, 'md5', md5) ORDER BY name)
                FROM upload
                WHERE upload.instance_id = instance.instance_id
            )
        )
        FROM instance
        JOIN job ON job.job_id = instance.job_id
        JOIN job_class ON job_class.job_class_id = instance.job_class_id
        JOIN batch ON batch.batch_id = instance.batch_id
        JOIN app ON app.app_id = batch.app_id
        WHERE instance.host_id = host.host_id AND instance.state = 'in_progress'
        ORDER BY instance.instance_id
    ) AS held,
    coalesce(asked.network, host.network, '') AS asked_network,
    ARRAY(
        SELECT quota
        FROM shared_quota AS quota
        WHERE quota.name IN (
            'volunteer ' || volunteer.volunteer_id, 'address ' || coalesce(asked.network, host.network, '')
        )
    ) AS quotas,
    (SELECT credit FROM credit WHERE credit.kind = 'host' AND credit.id = host.host_id) AS host_credit,
    (SELECT credit FROM credit WHERE credit.kind = 'volunteer' AND credit.id = volunteer.volunteer_id) AS own_credit,
    (
        SELECT ROW(team.team_id, team.name)
        FROM participation
        JOIN team ON team.team_id = participation.team_id
        WHERE participation.volunteer_id = volunteer.volunteer_id
    ) AS team
FROM unnest($1::bytea[], $2::bigint[], $3::text[], $4::text[]) WITH ORDINALITY AS asked (
    authenticator_hash, host_id, host_cpid, network, position
)
JOIN volunteer ON volunteer.authenticator_hash = asked.authenticator_hash
LEFT JOIN LATERAL (
    (
        SELECT *
        FROM host
        -- + 0: by the host's id, however many hosts the volunteer has
        WHERE host.host_id = asked.host_id AND host.volunteer_id + 0 = volunteer.volunteer_id
    )
    UNION ALL
    (
        SELECT *
        FROM host
        WHERE asked.host_id = 0
            AND asked.host_cpid <> ''
            AND host.volunteer_id = volunteer.volunteer_id
            AND host.host_cpid = asked.host_cpid
        ORDER BY host.host_id DESC
        LIMIT 1
    )
) AS host ON true
ORDER BY asked.position;


-- name: write_group
-- Purpose: write what a group of requests changes: hosts, reports, assignments, and what follows from them for jobs, marks,
--   counters and statistics. One statement, so that a round trip commits it.
--   Rows are locked in the order of all transactions: hosts, instances, jobs, marks, counters, statistics, and within a
--   table by key. PostgreSQL runs a part of WITH when another part reads it: each part that locks reads a count of the
--   part before it, and is fed in key order. Every part sees the tables as they were before the statement, therefore
--   no row may be changed by two parts, and what an earlier part changed is taken from its result. An update waits for
--   a concurrent change of its row and checks its conditions again; an unsent instance that is locked is left out.
-- Arguments: arrays, their ids distinct. Of hosts: $1 host_ids, $2 rpc_seqnos, $3 last_rpc_at, then the description, all null
--   if unchanged: $4 host_cpids, $5 domain_names, $6 ncpus, $7 flop_per_s, $8 ram_bytes, $9 disk_free_bytes,
--   $10 on_fractions, $11 active_fractions, $12 gpu_active_fractions, $13 platforms (JSON arrays), $14 os_names,
--   $15 os_versions, $16 cpu_vendors, $17 cpu_models, $18 client_versions, $19 coprocessors (JSON), $20 clock_skew_s,
--   $21 software, then
--   $22 why they got no job (JSON), null where they got one or requested none; $23 by how much a request may be
--   overtaken, s. Reports: $24 instance_ids, $25 host_ids, $26 from_states, $27 to_states, $28 reported_at, $29 elapsed_s,
--   $30 cpu_s, $31 exit_statuses or nulls, $32 reasons, $33 turnaround_samples or nulls, $34 standard errors or nulls,
--   $35 reported_before_at or nulls, then the changes of the batch's counters, but for late results: $36 in_progress,
--   $37 retries, $38 reported, $39 deadlines_missed. Instances that detached hosts lost: $40 job_ids, $41 batch_ids.
--   Assignments, in order, one per job and host: $42 instance_ids, $43 host_ids, $44 volunteer_ids, $45 app_version_ids,
--   $46 sent_at, $47 due_at, $48 timeout_at, $49 est_runtime_s, $50 tight, $51 due_terms, $52 job_ids, $53 gated,
--   $54 hr_classes and $55 copies (the same for all of a job), $56 how many before it are of the job and volunteer,
--   $57 whether it is the job's first. $58 whether to count sent instances in their hosts' statistics (not an array).
-- Result: one row per step made and per assignment that is a sibling: instance_id, fate (reported, sent, sibling),
--   command_line and inputs (JSON or null) of sent ones.
WITH hosts AS (
    -- rpc_interval_s moves a tenth of the way to the time since the last request. A description from shortly before the
    -- last written request is ignored: two requests of one host may be written out of order. A last request further in
    -- the future was recorded with a wrong clock.
    UPDATE host SET
        rpc_seqno = said.rpc_seqno,
        rpc_interval_s = CASE
            WHEN said.last_rpc_at > host.last_rpc_at
            THEN coalesce(0.9 * host.rpc_interval_s + 0.1 * (said.last_rpc_at - host.last_rpc_at),
                          said.last_rpc_at - host.last_rpc_at)
            ELSE host.rpc_interval_s
        END,
        last_rpc_at = said.last_rpc_at,
        host_cpid = coalesce(said.host_cpid, host.host_cpid),
        domain_name = coalesce(said.domain_name, host.domain_name),
        ncpus = coalesce(said.ncpus, host.ncpus),
        flop_per_s = coalesce(said.flop_per_s, host.flop_per_s),
        ram_bytes = coalesce(said.ram_bytes, host.ram_bytes),
        disk_free_bytes = coalesce(said.disk_free_bytes, host.disk_free_bytes),
        on_fraction = coalesce(said.on_fraction, host.on_fraction),
        active_fraction = coalesce(said.active_fraction, host.active_fraction),
        gpu_active_fraction = coalesce(said.gpu_active_fraction, host.gpu_active_fraction),
        platforms = CASE
            WHEN said.platforms IS NULL THEN host.platforms ELSE ARRAY(SELECT jsonb_array_elements_text(said.platforms))
        END,
        os_name = coalesce(said.os_name, host.os_name),
        os_version = coalesce(said.os_version, host.os_version),
        cpu_vendor = coalesce(said.cpu_vendor, host.cpu_vendor),
        cpu_model = coalesce(said.cpu_model, host.cpu_model),
        client_version = coalesce(said.client_version, host.client_version),
        coprocessors = coalesce(said.coprocessors, host.coprocessors),
        clock_skew_s = coalesce(said.clock_skew_s, host.clock_skew_s),
        software = coalesce(said.software, host.software),
        refused_at = CASE WHEN said.refused IS NULL THEN host.refused_at ELSE said.last_rpc_at END,
        refused = coalesce(said.refused, host.refused)
    FROM (
        SELECT *
        FROM unnest(
            $1::int[], $2::int[], $3::double precision[], $4::text[], $5::text[], $6::int[], $7::double precision[],
            $8::double precision[], $9::double precision[], $10::double precision[], $11::double precision[],
            $12::double precision[], $13::jsonb[], $14::text[], $15::text[], $16::text[], $17::text[], $18::int[], $19::jsonb[],
            $20::double precision[], $21::text[], $22::jsonb[]
        ) AS said (
            host_id, rpc_seqno, last_rpc_at, host_cpid, domain_name, ncpus, flop_per_s, ram_bytes, disk_free_bytes, on_fraction,
            active_fraction, gpu_active_fraction, platforms, os_name, os_version, cpu_vendor, cpu_model, client_version,
            coprocessors, clock_skew_s, software, refused
        )
        ORDER BY said.host_id
    ) AS said
    WHERE host.host_id = said.host_id
        AND (host.last_rpc_at <= said.last_rpc_at OR host.last_rpc_at > said.last_rpc_at + $23::double precision)
    RETURNING host.host_id
),
reported AS (
    UPDATE instance SET
        state = report.to_state,
        reported_at = report.reported_at,
        elapsed_s = report.elapsed_s,
        cpu_s = report.cpu_s,
        exit_status = report.exit_status,
        reason = nullif(report.reason, ''),
        turnaround_sample = coalesce(report.turnaround_sample, instance.turnaround_sample)
    FROM (
        SELECT *
        FROM unnest(
            $24::bigint[], $25::int[], $26::text[], $27::text[], $28::double precision[], $29::double precision[],
            $30::double precision[], $31::int[], $32::text[], $33::double precision[], $34::text[],
            $35::double precision[], $36::int[], $37::int[], $38::int[], $39::int[]
        ) AS report (
            instance_id, host_id, from_state, to_state, reported_at, elapsed_s, cpu_s, exit_status, reason,
            turnaround_sample, stderr, reported_before_at, in_progress, retries, reported, deadlines_missed
        )
        ORDER BY report.instance_id
    ) AS report
    WHERE instance.instance_id = report.instance_id
        AND instance.host_id = report.host_id
        AND instance.state = report.from_state
        AND (SELECT count(*) FROM hosts) >= 0
    RETURNING
        instance.instance_id, instance.job_id, instance.batch_id, report.stderr, report.in_progress, report.retries,
        report.reported,
        report.deadlines_missed + (report.reported_at > instance.due_at)::int
            - coalesce(report.reported_before_at > instance.due_at, false)::int AS deadlines_missed
),
errors AS (
    INSERT INTO instance_stderr (instance_id, stderr)
    SELECT instance_id, stderr FROM reported WHERE stderr IS NOT NULL ORDER BY instance_id
    ON CONFLICT (instance_id) DO UPDATE SET stderr = excluded.stderr
),
judged AS MATERIALIZED (
    -- Whether the job is still wanted, and whether the host or its volunteer had it already.
    SELECT
        assigned.*, instance.batch_id,
        -- not a condition: an index of the active batches would serve it
        job.state = 'open' AND batch.state = 'active' AS is_wanted,
        job.hr_class AS fixed_hr_class, job.copies AS job_copies,
        CASE WHEN job.template_id IS NULL THEN job.command_line ELSE (
            SELECT replace(template.command_line, '{i}', job.number::text)
            FROM job_template AS template WHERE template.template_id = job.template_id
        ) END AS command_line,
        CASE WHEN job.template_id IS NULL THEN job.inputs ELSE (
            SELECT template.inputs FROM job_template AS template WHERE template.template_id = job.template_id
        ) END AS inputs,
        siblings.first_nth + assigned.earlier AS nth, siblings.of_use, siblings.none_was_sent,
        siblings.on_host OR (
            (siblings.of_volunteer OR assigned.earlier > 0)
            AND (
                app.one_per_volunteer = 'always'
                OR (
                    app.one_per_volunteer = 'quorum'
                    AND greatest(job_class.quorum, app.adaptive_copies, job.copies) > 1
                )
            )
        ) AS is_sibling
    FROM unnest(
        $42::bigint[], $43::int[], $44::int[], $45::int[], $46::double precision[], $47::double precision[],
        $48::double precision[], $49::double precision[], $50::boolean[], $51::jsonb[], $52::bigint[], $53::boolean[],
        $54::int[], $55::int[], $56::int[], $57::boolean[]
    ) AS assigned (
        instance_id, host_id, volunteer_id, app_version_id, sent_at, due_at, timeout_at, est_runtime_s, tight,
        due_terms, job_id, gated, hr_class, copies, earlier, leads
    )
    JOIN instance ON instance.instance_id = assigned.instance_id
    JOIN job ON job.job_id = assigned.job_id
    JOIN batch ON batch.batch_id = job.batch_id
    JOIN job_class ON job_class.job_class_id = instance.job_class_id
    JOIN app ON app.app_id = batch.app_id
    CROSS JOIN LATERAL (
        SELECT
            coalesce(bool_or(
                sibling.host_id = assigned.host_id
                AND (
                    app.one_per_host
                    OR (
                        sibling.state = 'in_progress'
                        AND NOT sibling.instance_id = ANY(ARRAY(SELECT instance_id FROM reported))
                    )
                )
            ), false) AS on_host,
            coalesce(bool_or(sibling.volunteer_id = assigned.volunteer_id), false) AS of_volunteer,
            coalesce(max(sibling.nth) FILTER (WHERE sibling.volunteer_id = assigned.volunteer_id) + 1, 0) AS first_nth,
            count(sibling.volunteer_id) = 0 AS none_was_sent,
            count(*) FILTER (
                WHERE sibling.state IN ('unsent', 'in_progress', 'reported', 'inconclusive', 'valid')
            ) AS of_use
        FROM instance AS sibling
        WHERE sibling.job_id = assigned.job_id
    ) AS siblings
    WHERE instance.job_id = assigned.job_id
        AND instance.state = 'unsent'
        AND (SELECT count(*) FROM reported) >= 0
    ORDER BY instance.instance_id
    FOR UPDATE OF instance SKIP LOCKED
),
chosen AS (
    SELECT
        judged.*,
        hr_class <> fixed_hr_class OR copies > job_copies AS changes_job
    FROM judged
    WHERE is_wanted AND NOT is_sibling AND fixed_hr_class IN (0, hr_class)
),
noted AS (
    -- Another transaction may have fixed another class meanwhile: then the job is left out.
    UPDATE job SET
        hr_class = first.hr_class,
        copies = greatest(job.copies, first.copies)
    FROM (SELECT * FROM chosen WHERE leads AND changes_job ORDER BY job_id) AS first
    WHERE job.job_id = first.job_id AND job.hr_class IN (0, first.hr_class)
    RETURNING job.job_id, job.copies > first.of_use AS is_short
),
sent AS (
    -- In the order of the unique key (job, volunteer, nth), so that no two transactions wait for each other.
    UPDATE instance SET
        state = 'in_progress',
        host_id = assigned.host_id,
        volunteer_id = assigned.volunteer_id,
        app_version_id = assigned.app_version_id,
        sent_at = assigned.sent_at,
        due_at = assigned.due_at,
        timeout_at = assigned.timeout_at,
        est_runtime_s = assigned.est_runtime_s,
        tight = assigned.tight,
        due_terms = assigned.due_terms,
        gated = assigned.gated,
        nth = assigned.nth
    FROM (
        SELECT *
        FROM chosen
        WHERE NOT changes_job OR job_id IN (SELECT job_id FROM noted)
        ORDER BY job_id, volunteer_id, nth
    ) AS assigned
    WHERE instance.instance_id = assigned.instance_id AND instance.state = 'unsent'
    RETURNING
        instance.instance_id, instance.batch_id, instance.host_id, instance.app_version_id, instance.sent_at,
        assigned.command_line, assigned.inputs,
        CASE WHEN assigned.leads AND assigned.none_was_sent THEN instance.sent_at END AS first_dispatch_at
),
marked AS (
    INSERT INTO job_todo (job_id, serial)
    SELECT marked.job_id, nextval('job_todo_serial')
    FROM (
        SELECT job_id FROM reported
        UNION SELECT unnest($40::bigint[])
        UNION SELECT job_id FROM noted WHERE is_short
        ORDER BY job_id
    ) AS marked
    WHERE (SELECT count(*) FROM sent) >= 0
    ORDER BY marked.job_id
    ON CONFLICT (job_id) DO UPDATE SET serial = excluded.serial, not_before = 0
    RETURNING job_id
),
counted AS (
    -- In the first free stripe, as add_counts does.
    INSERT INTO batch_count AS old (
        batch_id, stripe, unsent, in_progress, retries, sent, reported, deadlines_missed, last_first_dispatch_at
    )
    SELECT
        change.batch_id, mine.stripe, sum(change.unsent), sum(change.in_progress), sum(change.retries), sum(change.sent),
        sum(change.reported), sum(change.deadlines_missed), max(change.first_dispatch_at)
    FROM (
        SELECT coalesce(
            (
                SELECT stripe
                FROM generate_series(0, 15) AS stripe
                WHERE pg_try_advisory_xact_lock(1297437782, stripe)
                LIMIT 1
            ),
            pg_backend_pid() % 16
        )::smallint AS stripe
        WHERE (SELECT count(*) FROM marked) >= 0
        OFFSET 0  -- evaluated once
    ) AS mine
    CROSS JOIN (
        SELECT
            batch_id, 0 AS unsent, in_progress, retries, 0 AS sent, reported, deadlines_missed,
            NULL::double precision AS first_dispatch_at
        FROM reported
        UNION ALL
        SELECT unnest($41::bigint[]), 0, -1, 1, 0, 0, 0, NULL
        UNION ALL
        SELECT batch_id, -1, 1, 0, 1, 0, 0, first_dispatch_at FROM sent
    ) AS change
    GROUP BY change.batch_id, mine.stripe
    ORDER BY change.batch_id
    ON CONFLICT (batch_id, stripe) DO UPDATE SET
        unsent = old.unsent + excluded.unsent,
        in_progress = old.in_progress + excluded.in_progress,
        retries = old.retries + excluded.retries,
        sent = old.sent + excluded.sent,
        reported = old.reported + excluded.reported,
        deadlines_missed = old.deadlines_missed + excluded.deadlines_missed,
        last_first_dispatch_at = greatest(old.last_first_dispatch_at, excluded.last_first_dispatch_at)
    RETURNING old.batch_id
),
statistics AS (
    -- Of two days, the later one counts.
    INSERT INTO host_app_version AS old (host_id, app_version_id, day, sent_today)
    SELECT DISTINCT ON (host_id, app_version_id) host_id, app_version_id, day, sent_today
    FROM (
        SELECT host_id, app_version_id, floor(sent_at / 86400)::int AS day, count(*) AS sent_today
        FROM sent
        WHERE $58::boolean AND (SELECT count(*) FROM counted) >= 0
        GROUP BY host_id, app_version_id, day
    ) AS of_day
    ORDER BY host_id, app_version_id, day DESC
    ON CONFLICT (host_id, app_version_id) DO UPDATE SET
        day = greatest(old.day, excluded.day),
        sent_today = CASE
            WHEN excluded.day > old.day THEN excluded.sent_today ELSE old.sent_today + excluded.sent_today
        END
)
SELECT instance_id, 'reported' AS fate, NULL::text AS command_line, NULL::jsonb AS inputs FROM reported
UNION ALL
SELECT instance_id, 'sent', command_line, inputs FROM sent
UNION ALL
SELECT instance_id, 'sibling', NULL, NULL FROM judged WHERE is_wanted AND is_sibling;
