-- name: account_by_name
-- Purpose: return one account.
-- Arguments: $1 name.
-- Result: the account; no row when there is none.
SELECT account_id, name, parent_id, shares, permissions FROM account WHERE name = $1;


-- name: account_tree
-- Purpose: return the tree of accounts and submitters as rows that can be loaded again.
-- Arguments: none.
-- Result: kind, name, parent (empty: none), shares, permissions: accounts by depth and name, submitters by name,
--   memberships by name and account.
WITH RECURSIVE tree AS (
    SELECT account_id, name, '' AS parent, shares, permissions, 0 AS depth FROM account WHERE parent_id IS NULL
    UNION ALL
    SELECT account.account_id, account.name, tree.name, account.shares, account.permissions, tree.depth + 1
    FROM account JOIN tree ON account.parent_id = tree.account_id
)
SELECT kind, name, parent, shares, permissions
FROM (
    SELECT 0 AS place, 'account' AS kind, depth, name, parent, shares, permissions FROM tree
    UNION ALL
    SELECT 1, 'submitter', 0, submitter.name, account.name, submitter.shares, submitter.permissions
    FROM submitter JOIN account USING (account_id)
    UNION ALL
    SELECT 2, 'membership', 0, submitter.name, account.name, membership.shares, '{}'
    FROM membership
    JOIN submitter ON submitter.submitter_id = membership.submitter_id
    JOIN account ON account.account_id = membership.account_id
) AS listed
ORDER BY place, depth, name, parent;


-- name: drop_account
-- Purpose: delete an account with its grant and recorded usage.
-- Arguments: $1 name.
-- Result: account_id; no row when there is none.
WITH gone AS (SELECT account_id FROM account WHERE name = $1 FOR UPDATE),
used AS (DELETE FROM usage USING gone WHERE usage.account_id = gone.account_id),
windows AS (DELETE FROM usage_window USING gone WHERE usage_window.account_id = gone.account_id),
granted AS (DELETE FROM account_grant USING gone WHERE account_grant.account_id = gone.account_id)
DELETE FROM account USING gone WHERE account.account_id = gone.account_id
RETURNING account.account_id;


-- name: drop_submitter
-- Purpose: delete a submitter with its further accounts and recorded usage.
-- Arguments: $1 name.
-- Result: submitter_id; no row when there is none.
WITH gone AS (SELECT submitter_id FROM submitter WHERE name = $1 FOR UPDATE),
used AS (DELETE FROM usage USING gone WHERE usage.submitter_id = gone.submitter_id),
windows AS (DELETE FROM usage_window USING gone WHERE usage_window.submitter_id = gone.submitter_id),
further AS (DELETE FROM membership USING gone WHERE membership.submitter_id = gone.submitter_id)
DELETE FROM submitter USING gone WHERE submitter.submitter_id = gone.submitter_id
RETURNING submitter.submitter_id;


-- name: insert_account
-- Purpose: insert an account, with or without a parent.
-- Arguments: $1 name, $2 parent_id or null, $3 shares.
-- Result: the account.
INSERT INTO account (name, parent_id, shares) VALUES ($1, $2, $3)
RETURNING account_id, name, parent_id, shares, permissions;


-- name: insert_submitter
-- Purpose: insert a submitter.
-- Arguments: $1 name, $2 account_id, $3 shares, $4 created_at.
-- Result: the submitter.
INSERT INTO submitter (name, account_id, shares, logical_at, created_at) VALUES ($1, $2, $3, 0, $4)
RETURNING submitter_id, name, account_id, shares, logical_at, permissions;


-- name: insert_volunteer
-- Purpose: insert a volunteer.
-- Arguments: $1 email in lower case, $2 name, $3 authenticator_nonce, $4 authenticator_hash, $5 password_salt,
--   $6 password_hash, $7 cross_project_id, $8 beta, $9 created_at.
-- Result: volunteer_id; no row when the e-mail is known.
INSERT INTO volunteer (
    email, name, authenticator_nonce, authenticator_hash, password_salt, password_hash, cross_project_id, beta, created_at
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (email) DO NOTHING
RETURNING volunteer_id;


-- name: list_accounts
-- Purpose: return every account.
-- Arguments: none.
-- Result: accounts by id.
SELECT account_id, name, parent_id, shares, permissions FROM account ORDER BY account_id;


-- name: list_submitters
-- Purpose: return every submitter.
-- Arguments: none.
-- Result: submitters by id.
SELECT submitter_id, name, account_id, shares, logical_at, permissions FROM submitter ORDER BY submitter_id;


-- name: list_volunteers
-- Purpose: return volunteers with their stored secrets.
-- Arguments: $1 limit or null for all, $2 volunteer_id after which to continue, 0 for the start.
-- Result: volunteers by id.
SELECT volunteer_id, email, name, authenticator_nonce, authenticator_hash, password_salt, password_hash, cross_project_id, beta,
       no_gpu, max_jobs, app_ids, no_cpu, max_cpus, preferred_at, created_at
FROM volunteer
WHERE volunteer_id > $2
ORDER BY volunteer_id
LIMIT $1;


-- name: lock_accounts
-- Purpose: return every account; none moves until the transaction ends.
-- Arguments: none.
-- Result: accounts by id.
SELECT account_id, name, parent_id, shares, permissions FROM account ORDER BY account_id FOR NO KEY UPDATE;


-- name: memberships_of
-- Purpose: return the further accounts of a submitter.
-- Arguments: $1 submitter_id.
-- Result: account_id, shares, by account_id.
SELECT account_id, shares FROM membership WHERE submitter_id = $1 ORDER BY account_id;


-- name: move_account
-- Purpose: move an account below another, or to the top.
-- Arguments: $1 name, $2 parent_id or null.
-- Result: none.
UPDATE account SET parent_id = $2 WHERE name = $1;


-- name: permit_account
-- Purpose: set the permissions of submissions in an account and below it.
-- Arguments: $1 name, $2 permissions.
-- Result: account_id; no row when there is none.
UPDATE account SET permissions = $2 WHERE name = $1
RETURNING account_id;


-- name: permit_submitter
-- Purpose: set a submitter's permissions.
-- Arguments: $1 name, $2 permissions.
-- Result: submitter_id; no row when there is none.
UPDATE submitter SET permissions = $2 WHERE name = $1
RETURNING submitter_id;


-- name: put_account
-- Purpose: insert an account, or change the one of that name.
-- Arguments: $1 name, $2 its parent's name or null, $3 shares, $4 permissions.
-- Result: none.
INSERT INTO account (name, parent_id, shares, permissions)
VALUES ($1, (SELECT account_id FROM account WHERE name = $2), $3, $4)
ON CONFLICT (name) DO UPDATE SET
    parent_id = excluded.parent_id, shares = excluded.shares, permissions = excluded.permissions;


-- name: put_membership
-- Purpose: add a submitter to a further account, with these shares.
-- Arguments: $1 submitter_id, $2 account_id, $3 shares.
-- Result: none.
INSERT INTO membership (submitter_id, account_id, shares) VALUES ($1, $2, $3)
ON CONFLICT (submitter_id, account_id) DO UPDATE SET shares = excluded.shares;


-- name: put_membership_by_name
-- Purpose: add a submitter to a further account, with these shares.
-- Arguments: $1 submitter's name, $2 account's name, $3 shares.
-- Result: none.
INSERT INTO membership (submitter_id, account_id, shares)
SELECT submitter.submitter_id, account.account_id, $3::double precision
FROM submitter, account
WHERE submitter.name = $1 AND account.name = $2
ON CONFLICT (submitter_id, account_id) DO UPDATE SET shares = excluded.shares;


-- name: put_submitter
-- Purpose: insert a submitter, or change the one of that name.
-- Arguments: $1 name, $2 account's name, $3 shares, $4 permissions, $5 now.
-- Result: none.
INSERT INTO submitter (name, account_id, shares, permissions, logical_at, created_at)
VALUES ($1, (SELECT account_id FROM account WHERE name = $2), $3, $4, 0, $5)
ON CONFLICT (name) DO UPDATE SET
    account_id = excluded.account_id, shares = excluded.shares, permissions = excluded.permissions;


-- name: rename_account
-- Purpose: rename an account.
-- Arguments: $1 name, $2 new name.
-- Result: account_id; no row when there is none.
UPDATE account SET name = $2 WHERE name = $1 RETURNING account_id;


-- name: rename_limits
-- Purpose: rename what limits apply to.
-- Arguments: $1 scope, $2 name, $3 new name.
-- Result: none.
UPDATE work_limit SET name = $3 WHERE scope = $1 AND name = $2;


-- name: rename_submitter
-- Purpose: rename a submitter.
-- Arguments: $1 name, $2 new name.
-- Result: submitter_id; no row when there is none.
UPDATE submitter SET name = $2 WHERE name = $1 RETURNING submitter_id;


-- name: submitter_by_name
-- Purpose: return one submitter.
-- Arguments: $1 name.
-- Result: the submitter; no row when there is none.
SELECT submitter_id, name, account_id, shares, logical_at, permissions FROM submitter WHERE name = $1;


-- name: update_account_shares
-- Purpose: change an account's shares.
-- Arguments: $1 name, $2 shares.
-- Result: the account; no row when there is none.
UPDATE account SET shares = $2 WHERE name = $1
RETURNING account_id, name, parent_id, shares, permissions;


-- name: update_submitter_shares
-- Purpose: change a submitter's shares.
-- Arguments: $1 name, $2 shares.
-- Result: the submitter; no row when there is none.
UPDATE submitter SET shares = $2 WHERE name = $1
RETURNING submitter_id, name, account_id, shares, logical_at, permissions;


-- name: update_volunteer
-- Purpose: change a volunteer's name and preferences.
-- Arguments: $1 volunteer_id, $2 name, $3 beta, $4 no_gpu, $5 max_jobs, $6 app_ids, $7 no_cpu, $8 max_cpus, $9 preferred_at,
--   $10 whether to do so only if they were last changed at $11 (null = never).
-- Result: volunteer_id; no row when there is none, or the preferences are newer ones.
UPDATE volunteer SET
    name = $2, beta = $3, no_gpu = $4, max_jobs = $5, app_ids = $6, no_cpu = $7, max_cpus = $8, preferred_at = $9
WHERE volunteer_id = $1 AND (NOT $10::boolean OR preferred_at IS NOT DISTINCT FROM $11::double precision)
RETURNING volunteer_id;


-- name: update_volunteer_password
-- Purpose: set a volunteer's password; the account key stays, so that clients stay attached. Codes sent by mail end, because
--   one for a new address holds the old password's hash.
-- Arguments: $1 volunteer_id, $2 password_salt, $3 password_hash.
-- Result: volunteer_id; no row when there is none.
WITH codes AS (DELETE FROM mail_code WHERE mail_code.volunteer_id = $1)
UPDATE volunteer SET password_salt = $2, password_hash = $3
WHERE volunteer_id = $1
RETURNING volunteer_id;


-- name: volunteer_by_email
-- Purpose: return one volunteer with the stored secrets.
-- Arguments: $1 email in lower case.
-- Result: the volunteer; no row when there is none.
SELECT volunteer_id, email, name, authenticator_nonce, authenticator_hash, password_salt, password_hash, cross_project_id, beta,
       no_gpu, max_jobs, app_ids, no_cpu, max_cpus, preferred_at, created_at
FROM volunteer
WHERE email = $1;


-- name: act_range
-- Purpose: find two times in the audit trail by bisection: ids grow with time.
-- Arguments: $1 and $2 times.
-- Result: first_id and end_id: the first act_id at or after each time; one above the last act_id if there is none.
WITH RECURSIVE step (at, low, high) AS (
    SELECT asked.at, coalesce((SELECT min(act_id) FROM act), 1), coalesce((SELECT max(act_id) FROM act), 0) + 1
    FROM (VALUES ($1::double precision), ($2::double precision)) AS asked (at)
    UNION ALL
    SELECT at, CASE WHEN older THEN middle + 1 ELSE low END, CASE WHEN older THEN high ELSE middle END
    FROM (
        SELECT at, low, high, (low + high) / 2 AS middle,
            (SELECT acted_at FROM act WHERE act_id >= (low + high) / 2 ORDER BY act_id LIMIT 1) < at AS older
        FROM step WHERE low < high
    ) AS halved
)
SELECT min(low) FILTER (WHERE at = $1) AS first_id, min(low) FILTER (WHERE at = $2) AS end_id FROM step WHERE low >= high;


-- name: latest_actions
-- Purpose: return the kinds of actions among the latest entries of the audit trail.
-- Arguments: $1 number of entries.
-- Result: what, in order.
SELECT DISTINCT latest.what FROM (SELECT what FROM act ORDER BY act_id DESC LIMIT $1) AS latest ORDER BY latest.what;


-- name: drop_ended_sessions
-- Purpose: delete expired sessions, up to a limit.
-- Arguments: $1 now, $2 limit.
-- Result: none.
DELETE FROM web_session WHERE session_hash IN (
    SELECT session_hash FROM web_session WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED
);


-- name: drop_known_networks
-- Purpose: delete networks without a recent sign-in, up to a limit.
-- Arguments: $1 before which time, $2 limit.
-- Result: none.
DELETE FROM known_network WHERE (who, network) IN (
    SELECT who, network FROM known_network WHERE at < $1 ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED
);


-- name: drop_old_attempts
-- Purpose: delete old sign-in failures, up to a limit.
-- Arguments: $1 before which time, $2 limit.
-- Result: none.
DELETE FROM sign_in_attempt WHERE key IN (
    SELECT key FROM sign_in_attempt WHERE at < $1 ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED
);


-- name: end_sessions_of_person
-- Purpose: sign a person out everywhere, except for one session.
-- Arguments: $1 person_id, $2 session_hash that stays, or an empty one.
-- Result: session_hash of those ended.
DELETE FROM web_session WHERE person_id = $1 AND session_hash <> $2
RETURNING session_hash;


-- name: end_sessions_of_volunteer
-- Purpose: sign a volunteer out everywhere, except for one session.
-- Arguments: $1 volunteer_id, $2 session_hash that stays, or an empty one.
-- Result: session_hash of those ended.
DELETE FROM web_session WHERE volunteer_id = $1 AND session_hash <> $2
RETURNING session_hash;


-- name: end_web_session
-- Purpose: sign out.
-- Arguments: $1 session_hash.
-- Result: none.
DELETE FROM web_session WHERE session_hash = $1;


-- name: insert_act
-- Purpose: add an entry to the audit trail.
-- Arguments: $1 acted_at, $2 who, $3 what, $4 target, $5 detail (JSON), $6 address.
-- Result: none.
INSERT INTO act (acted_at, who, what, target, detail, address) VALUES ($1, $2, $3, $4, $5::jsonb, $6);


-- name: insert_api_token
-- Purpose: insert an API token.
-- Arguments: $1 token_hash, $2 name, $3 person_id, $4 rights, $5 created_at, $6 expires_at.
-- Result: the row.
INSERT INTO api_token (token_hash, name, person_id, rights, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6)
RETURNING *, name AS token_name, created_at AS token_created_at;


-- name: insert_person
-- Purpose: insert a person who may sign in.
-- Arguments: $1 name, $2 role, $3 submitter_id, $4 password_hash, $5 password_salt, $6 scrypt_n, $7 scrypt_r,
--   $8 scrypt_p, $9 one_time_until, $10 created_at.
-- Result: the row; none when the name is taken.
INSERT INTO person (
    name, role, submitter_id, password_hash, password_salt, scrypt_n, scrypt_r, scrypt_p, one_time_until, created_at
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ON CONFLICT (name) DO NOTHING
RETURNING *;


-- name: insert_web_session
-- Purpose: insert a session after a sign-in.
-- Arguments: $1 session_hash, $2 person_id, $3 volunteer_id (one of them), $4 created_at, $5 seen_at, $6 expires_at,
--   $7 address, $8 agent.
-- Result: none.
INSERT INTO web_session (session_hash, person_id, volunteer_id, created_at, seen_at, expires_at, address, agent)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8);


-- name: known_network
-- Purpose: return whether an account has signed in from this network.
-- Arguments: $1 who, $2 network.
-- Result: at; no row when it has not.
SELECT at FROM known_network WHERE who = $1 AND network = $2;


-- name: act_before
-- Purpose: return how far a page searches the audit trail of a user.
-- Arguments: $1 who, $2 act_id before which to start, $3 how many to skip.
-- Result: act_id; no row when the user has fewer.
-- A range of pairs, because the planner would walk the primary key for an equal `who` and few users.
SELECT act_id
FROM act
WHERE (who, act_id) >= ($1::text, 0) AND (who, act_id) < ($1::text, $2::bigint)
ORDER BY who DESC, act_id DESC
OFFSET $3
LIMIT 1;


-- name: list_acts
-- Purpose: return a part of the audit trail.
-- Arguments: $1 limit, $2 act_id before which to continue, $3 lowest act_id to read, $4 what or action
--   (domain.access.Act) or '' for all, $5 targets or null for all.
-- Result: acts, newest first.
SELECT * FROM act
WHERE act_id < $2 AND act_id >= $3
    AND ($4::text IN ('', what) OR $4 = CASE
        WHEN what IN ('restrict', 'lift_restriction') AND split_part(target, ' ', 1) IN ('app', 'queue', 'batch')
            THEN CASE what WHEN 'restrict' THEN 'pause' ELSE 'resume' END
        WHEN what = 'lift_restriction' THEN 'lift'
        WHEN what = 'restrict' THEN CASE WHEN coalesce(detail ->> 'max_jobs', '0') = '0' THEN 'ban' ELSE 'limit' END
    END)
    AND ($5::text[] IS NULL OR target = ANY($5) OR string_to_array(target, ', ') && $5)
ORDER BY act_id DESC LIMIT $1;


-- name: list_acts_of
-- Purpose: return a part of the audit trail of one user.
-- Arguments: $1 to $5 as in list_acts, $6 who.
-- Result: acts, newest first.
SELECT * FROM act
WHERE (who, act_id) >= ($6::text, $3::bigint) AND (who, act_id) < ($6::text, $2::bigint)  -- as act_before
    AND ($4::text IN ('', what) OR $4 = CASE
        WHEN what IN ('restrict', 'lift_restriction') AND split_part(target, ' ', 1) IN ('app', 'queue', 'batch')
            THEN CASE what WHEN 'restrict' THEN 'pause' ELSE 'resume' END
        WHEN what = 'lift_restriction' THEN 'lift'
        WHEN what = 'restrict' THEN CASE WHEN coalesce(detail ->> 'max_jobs', '0') = '0' THEN 'ban' ELSE 'limit' END
    END)
    AND ($5::text[] IS NULL OR target = ANY($5) OR string_to_array(target, ', ') && $5)
ORDER BY who DESC, act_id DESC LIMIT $1;


-- name: list_api_tokens
-- Purpose: return API tokens.
-- Arguments: $1 person_id or null for all, $2 limit, $3 token_id after which to continue, 0 for the start.
-- Result: tokens by id.
SELECT *, name AS token_name, created_at AS token_created_at FROM api_token
WHERE ($1::int IS NULL OR person_id = $1) AND token_id > $3
ORDER BY token_id LIMIT $2;


-- name: list_people
-- Purpose: return the people who may sign in.
-- Arguments: $1 limit, $2 person_id after which to continue, 0 for the start.
-- Result: people by id.
SELECT * FROM person WHERE person_id > $2 ORDER BY person_id LIMIT $1;


-- name: list_web_sessions
-- Purpose: return a person's sessions.
-- Arguments: $1 person_id, $2 now, $3 limit.
-- Result: the person's sessions, the last used first.
SELECT *, created_at AS session_created_at FROM web_session
WHERE person_id = $1 AND expires_at > $2
ORDER BY seen_at DESC LIMIT $3;


-- name: lock_attempt
-- Purpose: return the number of failed sign-ins. The row is locked until the transaction ends.
-- Arguments: $1 key, $2 now.
-- Result: failures and when the last one was.
INSERT INTO sign_in_attempt (key, failures, at) VALUES ($1, 0, $2)
ON CONFLICT (key) DO UPDATE SET key = excluded.key
RETURNING failures, at;


-- name: note_known_network
-- Purpose: record that an account signed in from this network.
-- Arguments: $1 who, $2 network, $3 at.
-- Result: none.
INSERT INTO known_network (who, network, at) VALUES ($1, $2, $3)
ON CONFLICT (who, network) DO UPDATE SET at = excluded.at;


-- name: note_token_use
-- Purpose: record the use of a token.
-- Arguments: $1 token_id, $2 last_used_at.
-- Result: none.
UPDATE api_token SET last_used_at = $2 WHERE token_id = $1;


-- name: people_named
-- Purpose: return people by their names.
-- Arguments: $1 names.
-- Result: people, by id.
SELECT * FROM person WHERE name = ANY($1::text[]) ORDER BY person_id;


-- name: person_by_name
-- Purpose: return the person who signs in.
-- Arguments: $1 name.
-- Result: the person, or none.
SELECT * FROM person WHERE name = $1;


-- name: person_names
-- Purpose: return people's names.
-- Arguments: $1 person_ids.
-- Result: person_id, name.
SELECT person_id, name FROM person WHERE person_id = ANY($1);


-- name: renew_web_session
-- Purpose: record the use of a session.
-- Arguments: $1 session_hash, $2 seen_at, $3 expires_at.
-- Result: none.
UPDATE web_session SET seen_at = $2, expires_at = $3 WHERE session_hash = $1;


-- name: revoke_api_token
-- Purpose: revoke a token.
-- Arguments: $1 token_id, $2 revoked_at.
-- Result: the row; none when there is no such token.
UPDATE api_token SET revoked_at = coalesce(revoked_at, $2) WHERE token_id = $1
RETURNING *, name AS token_name, created_at AS token_created_at;


-- name: session_of_person
-- Purpose: return the person of a session.
-- Arguments: $1 session_hash, $2 now.
-- Result: the session with its person, who must be active; no row when it has ended.
SELECT
    s.session_hash, s.created_at AS session_created_at, s.seen_at, s.expires_at, s.address, s.agent, s.volunteer_id, p.*
FROM web_session AS s JOIN person AS p ON p.person_id = s.person_id
WHERE s.session_hash = $1 AND s.expires_at > $2 AND p.active;


-- name: session_of_volunteer
-- Purpose: return the volunteer of a session.
-- Arguments: $1 session_hash, $2 now.
-- Result: the session with its volunteer; no row when it has ended.
SELECT
    s.session_hash, s.created_at AS session_created_at, s.seen_at, s.expires_at, s.address, s.agent, s.person_id, v.*
FROM web_session AS s JOIN volunteer AS v ON v.volunteer_id = s.volunteer_id
WHERE s.session_hash = $1 AND s.expires_at > $2;


-- name: token_by_hash
-- Purpose: return the person of a token.
-- Arguments: $1 token_hash.
-- Result: the token and its person, who must be active; or none.
SELECT
    t.token_id, t.token_hash, t.name AS token_name, t.rights, t.created_at AS token_created_at, t.expires_at,
    t.last_used_at, t.revoked_at, p.*
FROM api_token AS t JOIN person AS p ON p.person_id = t.person_id
WHERE t.token_hash = $1 AND p.active;


-- name: update_password
-- Purpose: set a password.
-- Arguments: $1 person_id, $2 password_hash, $3 password_salt, $4 scrypt_n, $5 scrypt_r, $6 scrypt_p,
--   $7 one_time_until.
-- Result: person_id; none when there is no such person.
UPDATE person SET
    password_hash = $2, password_salt = $3, scrypt_n = $4, scrypt_r = $5, scrypt_p = $6, one_time_until = $7
WHERE person_id = $1
RETURNING person_id;


-- name: update_person
-- Purpose: change a person's role and status.
-- Arguments: $1 person_id, $2 role, $3 submitter_id, $4 active.
-- Result: the row; none when there is no such person.
UPDATE person SET role = $2, submitter_id = $3, active = $4 WHERE person_id = $1
RETURNING *;


-- name: write_attempt
-- Purpose: record a failed sign-in.
-- Arguments: $1 key, $2 failures, $3 at.
-- Result: none.
UPDATE sign_in_attempt SET failures = $2, at = $3 WHERE key = $1;
