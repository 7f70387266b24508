-- Purpose: the cut points the pointer names.
-- Arguments: none.
-- Result: cut points by app and processor type.
SELECT
    cut.app_id, cut.processor_type, generation.computed_at, cut.n, cut.turnaround, cut.consecutive_valid, cut.score_mean,
    cut.tight_n, cut.tight_mean, cut.tight_sd, cut.retry_turnaround_s, cut.median_safe_runtime_s
FROM percentile_pointer AS pointer
JOIN percentile_generation AS generation USING (generation)
JOIN cut_points AS cut USING (generation)
ORDER BY cut.app_id, cut.processor_type;
