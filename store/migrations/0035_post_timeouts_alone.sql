-- With a predicate that only questions about time-outs imply, no plan made while the table was small can use the
-- index for what a host has in progress, and read it whole once the table has grown.
DROP INDEX instance_by_timeout;
CREATE INDEX instance_by_timeout ON instance (timeout_at, instance_id)
WHERE state = 'in_progress' AND timeout_at IS NOT NULL;
