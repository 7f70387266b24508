-- A batch with an absurd logical time goes to the end of the queue, and what its submitter was charged for it is void.
UPDATE submitter SET
    shares = least(shares, 1e9),
    logical_at = CASE WHEN logical_at > created_at + 2e11 THEN 0 ELSE logical_at END
WHERE shares > 1e9 OR logical_at > created_at + 2e11;
UPDATE batch SET
    batch_flop = least(batch_flop, 1e29),
    logical_start_at = least(logical_start_at, created_at + 1e11),
    logical_end_at = least(logical_end_at, created_at + 2e11),
    charged_s = 0,
    refunded_s = 0
WHERE batch_flop > 1e29 OR logical_end_at > created_at + 2e11 OR charged_s > 1e11;
UPDATE batch SET deadline_at = created_at + 3153600000 WHERE deadline_at > created_at + 3153600000;
UPDATE batch SET job_pe = 1e6 WHERE job_pe > 1e6;
-- An instance sent with an absurd delay bound times out after ten years at the latest.
UPDATE instance SET
    due_at = sent_at + 315360000,
    timeout_at = sent_at + 315360000 + 86400,
    est_runtime_s = least(est_runtime_s, 315360000)
WHERE due_at IS NOT NULL AND due_at > sent_at + 315360000;
