-- The audit trail of one user.
CREATE INDEX CONCURRENTLY IF NOT EXISTS act_by_who ON act (who, act_id);
