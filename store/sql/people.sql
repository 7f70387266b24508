-- name: account_by_name
-- Purpose: one account.
-- Arguments: $1 name.
-- Result: the account; no row when there is none.
SELECT account_id, name, parent_id, shares, permissions FROM account WHERE name = $1;


-- name: insert_account
-- Purpose: a new account, under a parent or none.
-- Arguments: $1 name, $2 parent_id or null, $3 shares.
-- Result: the account.
INSERT INTO account (name, parent_id, shares) VALUES ($1, $2, $3)
RETURNING account_id, name, parent_id, shares, permissions;


-- name: insert_submitter
-- Purpose: a new submitter.
-- Arguments: $1 name, $2 account_id, $3 shares, $4 created_at.
-- Result: the submitter.
INSERT INTO submitter (name, account_id, shares, logical_at, created_at) VALUES ($1, $2, $3, 0, $4)
RETURNING submitter_id, name, account_id, shares, logical_at, permissions;


-- name: insert_volunteer
-- Purpose: a new volunteer.
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
-- Purpose: every account.
-- Arguments: none.
-- Result: accounts by id.
SELECT account_id, name, parent_id, shares, permissions FROM account ORDER BY account_id;


-- name: list_submitters
-- Purpose: every submitter.
-- Arguments: none.
-- Result: submitters by id.
SELECT submitter_id, name, account_id, shares, logical_at, permissions FROM submitter ORDER BY submitter_id;


-- name: list_volunteers
-- Purpose: volunteers with the stored secrets.
-- Arguments: $1 limit or null for all, $2 volunteer_id after which to go on, 0 for the start.
-- Result: volunteers by id.
SELECT volunteer_id, email, name, authenticator_nonce, authenticator_hash, password_salt, password_hash, cross_project_id, beta,
       no_gpu, max_jobs, app_ids, no_cpu, max_cpus, preferred_at, created_at
FROM volunteer
WHERE volunteer_id > $2
ORDER BY volunteer_id
LIMIT $1;


-- name: memberships_of
-- Purpose: the further accounts of a submitter.
-- Arguments: $1 submitter_id.
-- Result: account_id, shares, by account_id.
SELECT account_id, shares FROM membership WHERE submitter_id = $1 ORDER BY account_id;


-- name: permit_account
-- Purpose: what who submits in an account or below it may do.
-- Arguments: $1 name, $2 permissions.
-- Result: account_id; no row when there is none.
UPDATE account SET permissions = $2 WHERE name = $1
RETURNING account_id;


-- name: permit_submitter
-- Purpose: what a submitter may do.
-- Arguments: $1 name, $2 permissions.
-- Result: submitter_id; no row when there is none.
UPDATE submitter SET permissions = $2 WHERE name = $1
RETURNING submitter_id;


-- name: put_membership
-- Purpose: let a submitter submit in a further account, with these shares.
-- Arguments: $1 submitter_id, $2 account_id, $3 shares.
-- Result: none.
INSERT INTO membership (submitter_id, account_id, shares) VALUES ($1, $2, $3)
ON CONFLICT (submitter_id, account_id) DO UPDATE SET shares = excluded.shares;


-- name: submitter_by_name
-- Purpose: one submitter.
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
-- Purpose: a volunteer's new password; the account key stays, so that attached clients do.
-- Arguments: $1 volunteer_id, $2 password_salt, $3 password_hash.
-- Result: volunteer_id; no row when there is none.
UPDATE volunteer SET password_salt = $2, password_hash = $3
WHERE volunteer_id = $1
RETURNING volunteer_id;


-- name: volunteer_by_email
-- Purpose: one volunteer with the stored secrets.
-- Arguments: $1 email in lower case.
-- Result: the volunteer; no row when there is none.
SELECT volunteer_id, email, name, authenticator_nonce, authenticator_hash, password_salt, password_hash, cross_project_id, beta,
       no_gpu, max_jobs, app_ids, no_cpu, max_cpus, preferred_at, created_at
FROM volunteer
WHERE email = $1;
