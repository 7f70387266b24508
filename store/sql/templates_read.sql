-- Purpose: does every node read job templates? Migration 0104 is run when all of them have the code that does.
-- Arguments: none.
-- Result: read.
SELECT EXISTS (SELECT FROM schema_version WHERE version = 104) AS read;
