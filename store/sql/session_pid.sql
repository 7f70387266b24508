-- Purpose: the server's process of this session; a connection pooler tells its clients another one.
-- Arguments: none.
-- Result: pid.
SELECT pg_backend_pid() AS pid;
