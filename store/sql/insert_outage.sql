-- Purpose: remember an outage, whose due dates are moved afterwards.
-- Arguments: $1 alive_until, $2 ended_at.
-- Result: none.
INSERT INTO outage (alive_until, ended_at) VALUES ($1, $2);
