-- Purpose: send an instance of every n-th active batch that has one, as its counters say.
-- Arguments: $1 n.
-- Result: none.
UPDATE batch_count SET unsent = unsent - 1, in_progress = in_progress + 1, sent = sent + 1
WHERE stripe = 0 AND unsent > 0 AND batch_id % $1 = 0;
