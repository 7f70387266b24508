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


-- name: withdrawn_of_kind
-- Purpose: return deleted accounts or hosts that were exported.
-- Arguments: $1 kind.
-- Result: id and cpid, by id.
SELECT id, cpid FROM withdrawn WHERE kind = $1 ORDER BY id;


-- name: forget_withdrawn
-- Purpose: delete records of accounts and hosts that were deleted long ago.
-- Arguments: $1 before which time.
-- Result: none.
DELETE FROM withdrawn WHERE deleted_at < $1;


-- name: participation_of
-- Purpose: return a volunteer's choices about teams and statistics.
-- Arguments: $1 volunteer_id.
-- Result: team_id, joined_at and export_consent_at; no row: neither team nor consent.
SELECT team_id, joined_at, export_consent_at FROM participation WHERE volunteer_id = $1;


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
