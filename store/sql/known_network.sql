-- Purpose: has an account signed in from this network?
-- Arguments: $1 who, $2 network.
-- Result: at; no row when it has not.
SELECT at FROM known_network WHERE who = $1 AND network = $2;
