-- Purpose: who signs in.
-- Arguments: $1 name.
-- Result: the person, or none.
SELECT * FROM person WHERE name = $1;
