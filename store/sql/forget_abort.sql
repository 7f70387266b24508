-- Purpose: an abort is finished, unless somebody else's part of it is not committed yet.
-- Arguments: $1 batch_id.
-- Result: batch_id when it is finished.
DELETE FROM abort_todo
WHERE batch_id = $1
    AND NOT EXISTS (SELECT FROM job WHERE job.batch_id = $1 AND job.state = 'open')
    AND NOT EXISTS (SELECT FROM instance WHERE instance.batch_id = $1 AND instance.state = 'unsent' AND NOT instance.urgent)
    AND NOT EXISTS (SELECT FROM instance WHERE instance.batch_id = $1 AND instance.state = 'unsent' AND instance.urgent)
RETURNING batch_id;
