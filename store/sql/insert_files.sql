-- Purpose: register files; names that exist are left as they are.
-- Arguments: $1 names, $2 nbytes, $3 md5s, $4 signatures (arrays, the names distinct), $5 created_at.
-- Result: none.
INSERT INTO file (name, nbytes, md5, signature, created_at)
SELECT new.name, new.nbytes, new.md5, new.signature, $5::double precision
FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[]) AS new (name, nbytes, md5, signature)
ORDER BY new.name
ON CONFLICT (name) DO NOTHING;
