-- Purpose: those who may sign in.
-- Arguments: $1 limit, $2 person_id after which to go on, 0 for the start.
-- Result: people by id.
SELECT * FROM person WHERE person_id > $2 ORDER BY person_id LIMIT $1;
