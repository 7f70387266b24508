-- Purpose: add to what there is of a month of the history.
-- Arguments: $1 month, $2 jobs, $3 instances, $4 files, $5 file_bytes.
-- Result: none.
UPDATE finished_month SET
    jobs = jobs + $2,
    instances = instances + $3,
    files = files + $4,
    file_bytes = file_bytes + $5
WHERE month = $1;
