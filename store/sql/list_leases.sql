-- Purpose: the last lease of every host that has had one of late.
-- Arguments: none.
-- Result: rows of lease by host_id.
SELECT host_id, batch_id, processor_type, cores, start_at, limit_s, made_at, expires_at, ended_at, because
FROM lease
ORDER BY host_id;
