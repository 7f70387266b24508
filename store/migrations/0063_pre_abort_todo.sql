-- Aborts whose last jobs are not cancelled yet: the background process finishes those that were broken off. Older aborts are
-- looked at once.
CREATE TABLE abort_todo (
    batch_id  bigint PRIMARY KEY
);
INSERT INTO abort_todo SELECT batch_id FROM batch WHERE state = 'aborted';
