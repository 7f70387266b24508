-- An instance sent with an absurd delay bound times out after ten years at the latest.
UPDATE instance SET
    due_at = sent_at + 315360000,
    timeout_at = sent_at + 315360000 + 86400,
    est_runtime_s = least(est_runtime_s, 315360000)
WHERE due_at IS NOT NULL AND due_at > sent_at + 315360000;
