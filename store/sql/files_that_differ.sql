-- Purpose: names that stand for other contents than given.
-- Arguments: $1 names, $2 nbytes, $3 md5s (arrays).
-- Result: names, sorted.
SELECT file.name
FROM unnest($1::text[], $2::bigint[], $3::text[]) AS new (name, nbytes, md5)
JOIN file ON file.name = new.name
WHERE file.nbytes <> new.nbytes OR file.md5 <> new.md5
ORDER BY file.name;
