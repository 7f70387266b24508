-- Purpose: what a person may do.
-- Arguments: $1 person_id, $2 role, $3 submitter_id, $4 active.
-- Result: the row; none when there is no such person.
UPDATE person SET role = $2, submitter_id = $3, active = $4 WHERE person_id = $1
RETURNING *;
