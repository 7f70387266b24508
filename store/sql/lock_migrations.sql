-- Purpose: ask for our turn to migrate; held until the connection ends. Where another has it, answers half a second later.
--   It does not wait for the lock: CREATE INDEX CONCURRENTLY, of whoever has it, waits for every statement that waits.
-- Arguments: none.
-- Result: ours.
SELECT CASE WHEN pg_try_advisory_lock(1297437783, 0) THEN true ELSE pg_sleep(0.5) IS NULL END AS ours;
