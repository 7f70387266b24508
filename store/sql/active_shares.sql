-- Purpose: the shares of other submitters who have submitted lately.
-- Arguments: $1 submitter_id to leave out, $2 instant since which a batch counts.
-- Result: shares, their sum.
SELECT coalesce(sum(shares), 0) AS shares
FROM submitter
WHERE submitter_id <> $1
    AND EXISTS (SELECT FROM batch WHERE batch.submitter_id = submitter.submitter_id AND batch.created_at >= $2);
