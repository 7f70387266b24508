-- Purpose: volunteers 1 to $1; the account key of number n is md5('volunteer n').
-- Arguments: $1 how many, $2 created_at.
-- Result: none.
INSERT INTO volunteer (
    volunteer_id, email, name, authenticator_nonce, authenticator_hash, cross_project_id, created_at
)
SELECT
    n, 'volunteer' || n || '@example.org', 'Volunteer ' || n, decode(md5('nonce ' || n), 'hex'),
    sha256(convert_to(md5('volunteer ' || n), 'UTF8')), md5('cross project ' || n), $2::double precision
FROM generate_series(1, $1::int) AS n
ORDER BY n;
