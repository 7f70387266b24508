-- name: add_mail_code
-- Purpose: store a code for a new password or a new address; older ones of the volunteer, and expired ones, end.
-- Arguments: $1 code_hash, $2 volunteer_id, $3 expires_at, $4 now, $5 new address with $6 password_salt and $7 password_hash, or
--   nulls.
-- Result: none.
WITH older AS (DELETE FROM mail_code WHERE volunteer_id = $2 OR expires_at <= $4)
INSERT INTO mail_code (code_hash, volunteer_id, expires_at, email, password_salt, password_hash)
VALUES ($1, $2, $3, $5, $6, $7);


-- name: add_news
-- Purpose: add an item of news.
-- Arguments: $1 title, $2 body, $3 posted_at, $4 posted_by.
-- Result: news_id.
INSERT INTO news (title, body, posted_at, posted_by) VALUES ($1, $2, $3, $4) RETURNING news_id;


-- name: change_team
-- Purpose: change a team, by its founder.
-- Arguments: $1 team_id, $2 founder_id, $3 name, $4 url, $5 description.
-- Result: team_id; no row when there is none, or the founder is another.
UPDATE team SET name = $3, url = $4, description = $5 WHERE team_id = $1 AND founder_id + 0 = $2  -- by the key
RETURNING team_id;


-- name: drop_host
-- Purpose: delete a volunteer's host that has nothing in progress and no lease in force; its statistics, credit and ban go
--   too. The volunteer keeps the credit.
-- Arguments: $1 volunteer_id, $2 host_id, $3 now.
-- Result: host_id; no row when there is none, or it is in use.
WITH gone AS (
    SELECT host.host_id, md5(host.host_cpid || volunteer.email) AS cpid
    FROM host
    JOIN volunteer ON volunteer.volunteer_id = host.volunteer_id
    WHERE host.host_id = $2
        AND host.volunteer_id + 0 = $1
        AND (SELECT count(*) FROM instance WHERE instance.host_id = host.host_id AND instance.state = 'in_progress') = 0
        AND (SELECT count(*) FROM lease WHERE lease.host_id = host.host_id AND lease.ended_at IS NULL) = 0
    FOR UPDATE OF host
),
leased AS (DELETE FROM lease USING gone WHERE lease.host_id = gone.host_id RETURNING lease.host_id),
credited AS (DELETE FROM credit USING gone WHERE credit.kind = 'host' AND credit.id = gone.host_id),
known AS (DELETE FROM host_app_version AS hav USING gone WHERE hav.host_id = gone.host_id),
limited AS (DELETE FROM restriction USING gone WHERE restriction.kind = 'host' AND restriction.name = gone.host_id::text),
noted AS (
    INSERT INTO withdrawn (kind, id, cpid, deleted_at)
    SELECT 'host', gone.host_id, gone.cpid, $3
    FROM gone
    WHERE EXISTS (
        SELECT FROM participation WHERE participation.volunteer_id = $1 AND participation.export_consent_at IS NOT NULL
    )
)
DELETE FROM host USING gone WHERE host.host_id = gone.host_id AND (SELECT count(*) FROM leased) >= 0
RETURNING host.host_id;


-- name: drop_news
-- Purpose: delete an item of news.
-- Arguments: $1 news_id.
-- Result: title; no row when there is none.
DELETE FROM news WHERE news_id = $1 RETURNING title;


-- name: drop_team
-- Purpose: delete a team; it is locked, and has no members.
-- Arguments: $1 team_id.
-- Result: none.
WITH credited AS (DELETE FROM credit WHERE kind = 'team' AND id = $1)
DELETE FROM team WHERE team_id = $1;


-- name: export_totals
-- Purpose: count the owners of credit, with or without consent to the export.
-- Arguments: none.
-- Result: one row of counts, and the sum of the volunteers' credit.
SELECT
    count(*) FILTER (WHERE kind = 'volunteer') AS volunteers,
    count(*) FILTER (WHERE kind = 'team') AS teams,
    count(*) FILTER (WHERE kind = 'host') AS hosts,
    (SELECT count(*) FROM withdrawn WHERE withdrawn.kind = 'volunteer') AS volunteers_deleted,
    (SELECT count(*) FROM withdrawn WHERE withdrawn.kind = 'host') AS hosts_deleted,
    coalesce(sum(total) FILTER (WHERE kind = 'volunteer'), 0) AS credit
FROM credit;


-- name: exported_hosts
-- Purpose: return hosts with credit whose volunteers consent to the export.
-- Arguments: none.
-- Result: hosts by id, with cpid and credit.
SELECT host.*, md5(host.host_cpid || volunteer.email) AS cpid, credit
FROM credit
JOIN host ON host.host_id = credit.id
JOIN volunteer ON volunteer.volunteer_id = host.volunteer_id
JOIN participation ON participation.volunteer_id = host.volunteer_id
WHERE credit.kind = 'host' AND participation.export_consent_at IS NOT NULL
ORDER BY credit.id;


-- name: exported_teams
-- Purpose: return teams with credit; their founders only with consent.
-- Arguments: none.
-- Result: teams by id, with credit.
SELECT
    team.team_id, team.name, founder.volunteer_id AS founder_id, founder.name AS founder_name, team.created_at, team.url,
    team.description, credit
FROM credit
JOIN team ON team.team_id = credit.id
LEFT JOIN participation AS own ON own.volunteer_id = team.founder_id AND own.export_consent_at IS NOT NULL
LEFT JOIN volunteer AS founder ON founder.volunteer_id = own.volunteer_id
WHERE credit.kind = 'team'
ORDER BY credit.id;


-- name: exported_volunteers
-- Purpose: return volunteers with credit who consent to the export.
-- Arguments: none.
-- Result: volunteers by id, with cpid, team_id (null: none) and credit.
SELECT
    volunteer.volunteer_id, volunteer.name, volunteer.created_at,
    md5(volunteer.cross_project_id || volunteer.email) AS cpid, participation.team_id, credit
FROM credit
JOIN volunteer ON volunteer.volunteer_id = credit.id
JOIN participation ON participation.volunteer_id = credit.id
WHERE credit.kind = 'volunteer' AND participation.export_consent_at IS NOT NULL
ORDER BY credit.id;


-- name: forget_volunteer
-- Purpose: delete a volunteer's personal data: address, name, keys, preferences, consent, sessions, ban, and the names of
--   the hosts. The row stays, for the results.
-- Arguments: $1 volunteer_id, $2 new authenticator_hash, which belongs to no key, $3 now.
-- Result: the old email; no row when there is none.
WITH old AS (
    SELECT volunteer_id, email, md5(cross_project_id || email) AS cpid FROM volunteer WHERE volunteer_id = $1 FOR UPDATE
),
noted AS (
    INSERT INTO withdrawn (kind, id, cpid, deleted_at)
    SELECT kind, id, cpid, $3
    FROM (
        SELECT 'volunteer' AS kind, old.volunteer_id AS id, old.cpid FROM old
        UNION ALL
        SELECT 'host', host.host_id, md5(host.host_cpid || old.email)
        FROM host JOIN old ON old.volunteer_id = host.volunteer_id
    ) AS gone
    WHERE EXISTS (
        SELECT FROM participation WHERE participation.volunteer_id = $1 AND participation.export_consent_at IS NOT NULL
    )
    ON CONFLICT DO NOTHING
),
chosen AS (DELETE FROM participation USING old WHERE participation.volunteer_id = old.volunteer_id),
signed_in AS (DELETE FROM web_session USING old WHERE web_session.volunteer_id = old.volunteer_id),
codes AS (DELETE FROM mail_code USING old WHERE mail_code.volunteer_id = old.volunteer_id),
limited AS (
    DELETE FROM restriction USING old WHERE restriction.kind = 'volunteer' AND restriction.name = old.volunteer_id::text
),
networks AS (DELETE FROM known_network USING old WHERE known_network.who = 'volunteer ' || old.email),
hosts AS (
    UPDATE host SET domain_name = '', host_cpid = '', network = '' FROM old WHERE host.volunteer_id = old.volunteer_id
)
UPDATE volunteer SET
    email = 'deleted-' || old.volunteer_id || '@invalid', name = '', authenticator_nonce = '', authenticator_hash = $2,
    password_salt = NULL, password_hash = NULL, cross_project_id = '', beta = false, no_gpu = false, max_jobs = 0,
    app_ids = '{}', no_cpu = false, max_cpus = 0, preferred_at = NULL
FROM old
WHERE volunteer.volunteer_id = old.volunteer_id
RETURNING old.email;


-- name: forget_withdrawn
-- Purpose: delete records of accounts and hosts that were deleted long ago.
-- Arguments: $1 before which time.
-- Result: none.
DELETE FROM withdrawn WHERE deleted_at < $1;


-- name: grant_credit
-- Purpose: add the credit of results to their hosts, volunteers and the volunteers' teams, in key order. The average
--   follows domain/credit.py (Credit.plus).
-- Arguments: $1 host_ids, $2 volunteer_ids, $3 credits (arrays, one entry per result), $4 now.
-- Result: none.
INSERT INTO credit AS old (kind, id, total, average, at)
SELECT kind, id, sum(credit), sum(credit) * ln(2) / 7, $4
FROM (
    SELECT 'host' AS kind, host_id AS id, credit
    FROM unnest($1::int[], $3::double precision[]) AS granted (host_id, credit)
    UNION ALL
    SELECT 'volunteer', volunteer_id, credit
    FROM unnest($2::int[], $3::double precision[]) AS granted (volunteer_id, credit)
    UNION ALL
    SELECT 'team', participation.team_id, granted.credit
    FROM unnest($2::int[], $3::double precision[]) AS granted (volunteer_id, credit)
    JOIN participation ON participation.volunteer_id = granted.volunteer_id
    WHERE participation.team_id IS NOT NULL
) AS owed
GROUP BY kind, id
ORDER BY kind, id
ON CONFLICT (kind, id) DO UPDATE SET
    total = old.total + excluded.total,
    average = (
        SELECT
            old.average * kept + CASE
                WHEN 1 - kept <= 1e-6 THEN excluded.average ELSE excluded.total * (1 - kept) / since_s * 86400
            END
        FROM (
            SELECT since_s, power(2, -least(since_s / 604800, 1000)) AS kept
            FROM (SELECT greatest(0, excluded.at - old.at) AS since_s) AS since
        ) AS decayed
    ),
    at = greatest(old.at, excluded.at);


-- name: insert_team
-- Purpose: insert a team.
-- Arguments: $1 name, $2 founder_id, $3 url, $4 description, $5 now.
-- Result: team_id.
INSERT INTO team (name, founder_id, url, description, created_at) VALUES ($1, $2, $3, $4, $5) RETURNING team_id;


-- name: join_team
-- Purpose: make a volunteer a member of a team, instead of the present one; or of none.
-- Arguments: $1 volunteer_id, $2 team_id or null, $3 now or null.
-- Result: none.
INSERT INTO participation (volunteer_id, team_id, joined_at) VALUES ($1, $2, $3)
ON CONFLICT (volunteer_id) DO UPDATE SET team_id = excluded.team_id, joined_at = excluded.joined_at
WHERE participation.team_id IS DISTINCT FROM excluded.team_id;


-- name: leave_all
-- Purpose: end every membership of a team.
-- Arguments: $1 team_id.
-- Result: none.
UPDATE participation SET team_id = NULL, joined_at = NULL WHERE team_id = $1;


-- name: list_news
-- Purpose: return the last news.
-- Arguments: $1 limit.
-- Result: news, newest first.
SELECT news_id, title, body, posted_at, posted_by FROM news ORDER BY posted_at DESC, news_id DESC LIMIT $1;


-- name: lock_team
-- Purpose: lock a team until the transaction ends.
-- Arguments: $1 team_id.
-- Result: founder_id; no row when there is none.
SELECT founder_id FROM team WHERE team_id = $1 FOR UPDATE;


-- name: members_of_team
-- Purpose: return the members of a team, most credit first.
-- Arguments: $1 team_id, $2 limit.
-- Result: volunteer_id, name, exported (whether they consented to the statistics), credit (null: none).
SELECT
    volunteer.volunteer_id, volunteer.name, participation.export_consent_at IS NOT NULL AS exported, credit
FROM participation
JOIN volunteer ON volunteer.volunteer_id = participation.volunteer_id
LEFT JOIN credit ON credit.kind = 'volunteer' AND credit.id = participation.volunteer_id
WHERE participation.team_id = $1
ORDER BY coalesce(credit.total, 0) DESC, participation.volunteer_id
LIMIT $2;


-- name: name_founder
-- Purpose: give a locked team to another of its members.
-- Arguments: $1 team_id, $2 the member's volunteer_id.
-- Result: team_id; no row when that volunteer is no member.
UPDATE team SET founder_id = $2
WHERE team_id = $1 AND $2 IN (SELECT volunteer_id FROM participation WHERE participation.team_id = $1)
RETURNING team_id;


-- name: oldest_member
-- Purpose: return the member who joined a team first, except one.
-- Arguments: $1 team_id, $2 volunteer_id of the exception.
-- Result: volunteer_id; no row when there is no other member.
SELECT volunteer_id FROM participation
WHERE team_id = $1 AND volunteer_id <> $2
ORDER BY joined_at, volunteer_id
LIMIT 1;


-- name: participation_of
-- Purpose: return a volunteer's choices about teams and statistics.
-- Arguments: $1 volunteer_id.
-- Result: team_id, joined_at and export_consent_at; no row: neither team nor consent.
SELECT team_id, joined_at, export_consent_at FROM participation WHERE volunteer_id = $1;


-- name: project_figures
-- Purpose: count volunteers and hosts, with credit, with recent credit, and new ones. Reads whole tables.
-- Arguments: $1 now.
-- Result: one row of counts, and the sum of the volunteers' recent averages.
WITH recent AS (
    SELECT kind, average * power(2, -least(greatest(0, $1 - at) / 604800, 1000)) AS average FROM credit
)
SELECT
    (SELECT count(*) FROM volunteer) AS volunteers,
    (SELECT count(*) FROM host) AS hosts,
    (SELECT count(*) FROM volunteer WHERE created_at > $1 - 86400) AS volunteers_today,
    (SELECT count(*) FROM host WHERE created_at > $1 - 86400) AS hosts_today,
    count(*) FILTER (WHERE kind = 'volunteer') AS volunteers_with_credit,
    count(*) FILTER (WHERE kind = 'host') AS hosts_with_credit,
    count(*) FILTER (WHERE kind = 'volunteer' AND average > 1) AS volunteers_with_recent_credit,
    count(*) FILTER (WHERE kind = 'host' AND average > 1) AS hosts_with_recent_credit,
    coalesce(sum(average) FILTER (WHERE kind = 'volunteer'), 0) AS average,
    (SELECT count(*) FROM job_todo) AS jobs_to_validate
FROM recent;


-- name: rename_volunteer
-- Purpose: change a volunteer's public name.
-- Arguments: $1 volunteer_id, $2 name.
-- Result: volunteer_id; no row when there is none.
UPDATE volunteer SET name = $2 WHERE volunteer_id = $1 RETURNING volunteer_id;


-- name: set_export_consent
-- Purpose: note a volunteer's consent to the export, or its withdrawal. The time of a standing consent stays.
-- Arguments: $1 volunteer_id, $2 now, or null to withdraw.
-- Result: none.
INSERT INTO participation AS old (volunteer_id, export_consent_at) VALUES ($1, $2)
ON CONFLICT (volunteer_id) DO UPDATE SET
    export_consent_at = CASE
        WHEN excluded.export_consent_at IS NULL THEN NULL
        ELSE coalesce(old.export_consent_at, excluded.export_consent_at)
    END;


-- name: set_volunteer_email
-- Purpose: change a volunteer's address, with the password's hash for it; codes sent to the old one end.
-- Arguments: $1 volunteer_id, $2 email in lower case, $3 password_salt, $4 password_hash.
-- Result: volunteer_id; no row when there is none.
WITH codes AS (DELETE FROM mail_code WHERE mail_code.volunteer_id = $1)
UPDATE volunteer SET email = $2, password_salt = $3, password_hash = $4 WHERE volunteer_id = $1
RETURNING volunteer_id;


-- name: take_mail_code
-- Purpose: use a code, which serves once.
-- Arguments: $1 code_hash, $2 now, $3 whether it must be for a new address, or for a new password.
-- Result: volunteer_id, email, password_salt, password_hash; no row when there is no such code, or it has expired.
DELETE FROM mail_code
WHERE code_hash = $1 AND expires_at > $2 AND (email IS NOT NULL) = $3
RETURNING volunteer_id, email, password_salt, password_hash;


-- name: team_by_id
-- Purpose: return one team.
-- Arguments: $1 team_id.
-- Result: the team with founder_name, exported (the founder's consent), members and credit (null: none); no row when there is none.
SELECT
    team.*, founder.name AS founder_name, own.export_consent_at IS NOT NULL AS exported, credit,
    (SELECT count(*) FROM participation WHERE participation.team_id = team.team_id) AS members
FROM team
LEFT JOIN volunteer AS founder ON founder.volunteer_id = team.founder_id
LEFT JOIN participation AS own ON own.volunteer_id = team.founder_id
LEFT JOIN credit ON credit.kind = 'team' AND credit.id = team.team_id
WHERE team.team_id = $1;


-- name: teams_named
-- Purpose: return the teams whose names contain a text, most recent credit first.
-- Arguments: $1 text in lower case, $2 now, $3 limit.
-- Result: teams as of team_by_id.
SELECT
    team.*, founder.name AS founder_name, own.export_consent_at IS NOT NULL AS exported, credit,
    (SELECT count(*) FROM participation WHERE participation.team_id = team.team_id) AS members
FROM team
LEFT JOIN volunteer AS founder ON founder.volunteer_id = team.founder_id
LEFT JOIN participation AS own ON own.volunteer_id = team.founder_id
LEFT JOIN credit ON credit.kind = 'team' AND credit.id = team.team_id
WHERE position($1 IN lower(team.name)) > 0
ORDER BY coalesce(credit.average * power(2, -least(greatest(0, $2 - credit.at) / 604800, 1000)), 0) DESC, team.team_id
LIMIT $3;


-- name: teams_of_founder
-- Purpose: return the teams of a founder.
-- Arguments: $1 founder_id.
-- Result: team_id, by id.
SELECT team_id FROM team WHERE founder_id = $1 ORDER BY team_id;


-- name: volunteer_by_id
-- Purpose: return one volunteer with the stored secrets.
-- Arguments: $1 volunteer_id, or null to search by the key, $2 authenticator_hash or null.
-- Result: the volunteer; no row when there is none.
SELECT volunteer_id, email, name, authenticator_nonce, authenticator_hash, password_salt, password_hash, cross_project_id, beta,
       no_gpu, max_jobs, app_ids, no_cpu, max_cpus, preferred_at, created_at
FROM volunteer
WHERE volunteer_id = $1 OR authenticator_hash = $2;


-- name: withdrawn_of_kind
-- Purpose: return deleted accounts or hosts that were exported.
-- Arguments: $1 kind.
-- Result: id and cpid, by id.
SELECT id, cpid FROM withdrawn WHERE kind = $1 ORDER BY id;
