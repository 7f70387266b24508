-- Purpose: forget the new hosts of days that are over.
-- Arguments: $1 day before which.
-- Result: none.
DELETE FROM host_arrival WHERE day < $1;
