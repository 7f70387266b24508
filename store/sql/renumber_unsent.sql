-- Purpose: give every unsent instance a new id, in the order of the old ones. Clients may know the old ids from before a
--   restore. Reads every unsent instance.
-- Arguments: $1 the new ids begin behind this one; it is greater than every id in use.
-- Result: instances, how many.
WITH numbered AS (
    SELECT instance_id, row_number() OVER (ORDER BY instance_id) AS number FROM instance WHERE state = 'unsent'
),
renumbered AS (
    UPDATE instance SET instance_id = $1::bigint + numbered.number
    FROM numbered
    WHERE instance.instance_id = numbered.instance_id
    RETURNING 1
)
SELECT count(*) AS instances FROM renumbered;
