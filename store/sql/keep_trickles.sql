-- Purpose: store trickle messages, so many of each instance at most; one that is stored already is left as it is.
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
