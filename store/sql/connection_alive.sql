-- Ask the server whether the connection is alive.
-- returns alive
SELECT true AS alive;
