-- Purpose: give the session lock of a background duty up.
-- Arguments: $1 name of the duty.
-- Result: given_up, false where this session did not hold it.
SELECT pg_advisory_unlock(1297437780, hashtext($1)) AS given_up;
