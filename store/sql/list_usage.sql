-- Purpose: what everybody used, decayed.
-- Arguments: none.
-- Result: rows of usage by key.
SELECT submitter_id, account_id, flop, cpu_s, memory_byte_s, gpu_s, at, accuracies
FROM usage
ORDER BY submitter_id, account_id;
